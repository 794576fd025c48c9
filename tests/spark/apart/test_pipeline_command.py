"""`twinstream pipeline run` as a process of its own, ended as people and systems end it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from js_sync import Stream
from tests.soak import LONGEST
from tests.spark.pipelines import counted, write_config
from twinstream.testing import NatsServer


def started(file: Path) -> subprocess.Popen[str]:
    """A run of a pipeline, in a session of processes of its own."""
    command = ["pipeline", "run", "--config", str(file), "--every", "1s", "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "twinstream", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def java_of(session: int) -> str | None:
    """Return the command of a Java process that has begun in a session (Linux only)."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            head, _, rest = stat.read_text().rpartition(")")
            if head.endswith("(java") and int(rest.split()[3]) == session:
                return stat.with_name("cmdline").read_text().replace("\0", " ")
    return None


def test_ctrl_c_ends_a_run_between_two_batches(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(40)])
    source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nmax_messages = 20'
    program = started(write_config(tmp_path, "parquet", server.url, source))
    try:
        assert program.stdout is not None
        for line in program.stdout:
            event = json.loads(line)
            if event["event"] == "landed" and event["end"] == 41:
                break
        command = java_of(program.pid)
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to Java and the workers too
        left, errors = program.communicate(timeout=LONGEST)
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait(LONGEST)
    assert (program.returncode, errors) == (0, "")
    assert command is not None
    assert "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" in command, "Java only plans"
    assert "-Dlog4j2.configurationFile=" in command
    assert [json.loads(each)["event"] for each in left.splitlines()][-1:] == ["ended"]
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (40, 40)


def test_the_local_engine_starts_neither_java_nor_spark(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"id": at} for at in range(40)])
    source = f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nmax_messages = 20\n'
    source += "options = {minPartitions = 2}"
    program = started(write_config(tmp_path, "parquet", server.url, source, engine="local"))
    try:
        assert program.stdout is not None
        for line in program.stdout:
            event = json.loads(line)
            if event["event"] == "landed" and event["end"] == 41:
                break
        assert java_of(program.pid) is None
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to the processes of tasks, too
        left, errors = program.communicate(timeout=LONGEST)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait(LONGEST)
    assert (program.returncode, errors) == (0, "")
    assert [json.loads(each)["event"] for each in left.splitlines()][-1:] == ["ended"]
    assert counted(tmp_path / "lake" / "orders", "parquet", "seq") == (40, 40)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_while_spark_starts_leaves_no_java(
    number: signal.Signals, server: NatsServer, make_stream: Callable[..., Stream], tmp_path: Path
) -> None:
    source = f'stream = "{make_stream().name}"\nname = "orders"'
    program = started(write_config(tmp_path, "parquet", server.url, source))
    try:
        deadline = time.monotonic() + LONGEST
        while java_of(program.pid) is None:
            assert program.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        program.send_signal(number)
        # It ends only when Java has, too, which writes into the same pipes.
        left, errors = program.communicate(timeout=LONGEST)
    finally:
        with suppress(ProcessLookupError):  # none is left
            os.killpg(program.pid, signal.SIGKILL)
        program.wait(LONGEST)
    assert (program.returncode, errors) == (0, "")
    assert [json.loads(each)["event"] for each in left.splitlines()] == ["ended"]
