"""The programs in `examples/`: each prints what its docstring shows, and its page links it."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import js_sync
from tests.examples import ROOT, run
from tests.test_worker_example import stopped, working
from twinstream.testing import NatsServer

FOLDER = ROOT / "examples"
# These run until a signal, and have tests below or of their own.
UNTIL_SIGNAL = {"consume_async", "consume_sync", "service", "worker"}
SPARK = {"spark_table"}
WITHOUT_SERVER = {"validate"}
PROGRAMS = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}


def promised(program: Path) -> str:
    """Return the output that the docstring of a program shows."""
    text = ast.get_docstring(ast.parse(program.read_text("utf-8"))) or ""
    output = text.partition("\n\nIt prints:\n\n")[2]
    assert output, f"{program.name} promises no output"
    return dedent(output) + "\n"


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - UNTIL_SIGNAL - SPARK))
def test_a_program_prints_what_it_says(name: str, server: NatsServer, tmp_path: Path) -> None:
    arguments = [] if name in WITHOUT_SERVER else [server.url]
    command = [sys.executable, str(PROGRAMS[name]), *arguments]
    assert run(command, server, tmp_path, seconds=60) == promised(PROGRAMS[name])


@pytest.mark.parametrize("name", ["consume_async", "consume_sync"])
def test_a_consumer_handles_messages_until_a_signal(name: str, server: NatsServer) -> None:
    with js_sync.connect(server.url) as nc, working(PROGRAMS[name], server) as process:
        jet = nc.jetstream(timeout=30)
        config = js_sync.StreamConfig(name="ALARMS", subjects=["alarms.>"])
        stream = jet.create_stream(config)
        for number in range(3):
            jet.publish("alarms.kitchen", b"smoke %d" % number)
        assert process.stdout is not None
        printed = {process.stdout.readline() for _ in range(3)}
        assert printed == {f"alarms.kitchen smoke {number}\n" for number in range(3)}
        assert stopped(process) == ["printed 3"]
        info = stream.get_consumer("printer").info()
        assert (info.num_pending, info.num_ack_pending) == (0, 0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_and_says_how_to_run_it(name: str) -> None:
    code = PROGRAMS[name].read_text("utf-8")
    assert 20 <= len(code.splitlines()) <= 80
    assert re.search(rf"python (examples/)?{name}\.py", code)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_linked_from_its_page_and_from_the_list(name: str) -> None:
    pages = {
        page.stem
        for page in (ROOT / "docs").glob("*.md")
        if f"](../examples/{name}.py)" in page.read_text("utf-8")
    }
    assert "guides" in pages
    assert len(pages) > 1
