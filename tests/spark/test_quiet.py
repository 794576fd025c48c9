"""A program that runs a pipeline with Spark has sentences on its screen, and no traces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from js_sync import Stream
from tests.soak import LONGEST
from tests.spark.pipelines import write_config
from twinstream.testing import NatsServer

ROOT = Path(__file__).parents[2]


def test_a_refusal_and_a_stop_write_no_traces(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    stream = make_stream()
    fill(stream, [{"n": 1}, {"n": 2}])
    files: list[Path] = []
    for name, kind in (("integer", "integer"), ("number", "string")):
        folder = tmp_path / name
        folder.mkdir()
        text = (
            f'stream = "{stream.name}"\nname = "orders"\ntable = "orders"\nformat = "json"\n'
            'schema = "order.json"\n'
        )
        files.append(write_config(folder, "parquet", server.url, text))
        files[-1].write_text(files[-1].read_text().replace('"lake"', f'"{tmp_path / "lake"}"'))
        schema = {"type": "object", "properties": {"n": {"type": kind}}}
        (folder / "order.json").write_text(json.dumps(schema))
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.quiet_program", *map(str, files), str(server.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert program.stdout is not None
    printed: list[str] = []
    while not printed or printed[-1] not in ("ready\n", ""):
        printed.append(program.stdout.readline())
    fill(stream, [{"n": 3}])
    rest, errors = program.communicate("go\n", timeout=LONGEST)
    text = "".join(printed) + rest
    assert program.returncode == 0, (text, errors)
    assert text.startswith("landed: {}\nrefused: {'orders': \"column 'n'"), text
    assert text.endswith("stopped\n")
    plans, entries = (tmp_path / "lake/_pipeline/orders" / each for each in ("plan", "landed"))
    assert len([*plans.iterdir()]) == len([*entries.iterdir()]) + 1, "a batch was interrupted"
    for trace in ("Traceback", "org.apache", "Exception"):
        assert trace not in errors, errors
