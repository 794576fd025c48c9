"""``twinstream pipeline run`` as a process of its own, ended as people and systems end it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from js_sync import Stream
from js_testing import NatsServer
from tests.spark.pipelines import counted, write_config


def test_ctrl_c_ends_a_run_between_two_batches(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(40)])
    source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nmax_messages = 20'
    file = write_config(tmp_path, "parquet", server.url, source)
    command = ["pipeline", "run", "--config", str(file), "--every", "1s", "--json"]
    program = subprocess.Popen(
        [sys.executable, "-m", "js_cli.main", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert program.stdout is not None
        for line in program.stdout:
            event = json.loads(line)
            if event["event"] == "landed" and event["end"] == 41:
                break
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to Java and the workers too
        left, errors = program.communicate(timeout=200)
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait(60)
    assert (program.returncode, errors) == (0, "")
    assert [json.loads(each)["event"] for each in left.splitlines()][-1:] == ["ended"]
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (40, 40)
