"""The programs in `examples/`: each prints what its docstring shows, and its page links it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import js_sync
from tests.examples import ROOT, check_program
from tests.test_worker_example import stopped, working
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer

FOLDER = ROOT / "examples"
# These have other tests: they run until a signal, or need Java (tests/spark).
OTHERS = {"consume_async", "consume_sync", "service", "worker", "spark_table"}
SINCE = {"delayed_jobs": "2.12"}
PROGRAMS = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
ENDING = [
    pytest.param(name, marks=pytest.mark.since(SINCE.get(name, "2.11")))
    for name in PROGRAMS
    if name not in OTHERS
]


@pytest.mark.parametrize("name", ENDING)
def test_a_program_prints_what_it_says(name: str, server: NatsServer, tmp_path: Path) -> None:
    check_program(PROGRAMS[name], server, tmp_path)


@pytest.mark.parametrize("name", ["consume_async", "consume_sync"])
def test_a_consumer_handles_messages_until_a_signal(name: str, server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc, working(PROGRAMS[name], server) as process:
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


def test_the_service_answers_until_a_signal(server: NatsServer) -> None:
    with (
        js_sync.connect(server.url, **UNHURRIED) as nc,
        working(PROGRAMS["service"], server) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "serves convert.celsius\n"
        assert nc.request("convert.celsius", b"20", timeout=30).data == b"68.0"
        refusal = nc.request("convert.celsius", b"warm", timeout=30)
        assert refusal.headers["Nats-Service-Error-Code"] == "400"
        assert "'warm'" in refusal.headers["Nats-Service-Error"]
        assert stopped(process) == ["answered 1 refused 1"]


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
