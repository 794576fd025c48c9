"""`twinstream size`, compared with the sizes that a real server reports."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import js_sync
from tests.cli.output import Run
from tests.unhurried import UNHURRIED
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

_numbers = itertools.count(1)


def figures(run: Run, *arguments: str) -> dict[str, Any]:
    result = run("size", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def filled(server: NatsServer, storage: str, count: int, **more: Any) -> str:
    name = f"SIZES{next(_numbers)}"
    config = StreamConfig(name=name, subjects=[f"{name}.>"], storage=storage, **more)
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        jet.create_stream(config)
        for _ in range(count):
            jet.publish(f"{name}.a.b", b"x" * 321, headers={"Kind": ["one", "two"], "A": "é"})
    return name


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("count", [1, 7])
def test_calculated_and_live_sizes_are_equal(
    run: Run, server: NatsServer, storage: str, count: int
) -> None:
    name = filled(server, storage, count)
    headers = ("-H", "Kind: one", "-H", "Kind: two", "-H", "A: é")
    message = ("--subject", f"{name}.a.b", "--payload", "321", *headers)
    offline = figures(run, *message, "--storage", storage, "--messages", str(count))
    live = figures(run, "--live", name)
    assert offline["bytes"] == live["bytes"]
    assert offline["message"] == live["message"]
    assert live["messages"] == count


def test_a_typical_message_is_calculated_without_a_server(run: Run) -> None:
    found = figures(run, "--subject", "abcd", "--payload", "5", "--replicas", "3")
    assert (found["message"], found["overhead"], found["total"]) == (39, 34, 117)
    shown = run("size", "--subject", "abcd", "--payload", "5", "--messages", "1000000").stdout
    assert "a message\t39\n" in shown
    assert "1,000,000 messages\t39000000\n" in shown


def test_messages_that_fit_are_counted(run: Run, server: NatsServer) -> None:
    assert figures(run, "--payload", "66", "--max-bytes", "1000")["fitting"] == 10
    name = filled(server, "memory", 2, max_bytes=100_000)
    live = figures(run, "--live", name)
    assert live["fitting"] == int(100_000 / live["message"])
    assert live["bytes_a_day"] > 0
    assert live["bytes_at_max_age"] is None
    assert figures(run, "--live", name, "--messages", "10")["bytes"] == live["message"] * 10


def test_error_for_an_empty_stream_has_a_hint(run: Run, stream: str) -> None:
    result = run("size", "--live", stream)
    assert result.exit_code == 1
    assert result.stderr == f"error: stream {stream} is empty; describe a message with --payload\n"


def test_a_subject_that_no_message_can_have_is_refused(run: Run) -> None:
    result = run("size", "--subject", "a..b", "--payload", "5")
    assert result.exit_code == 1
    assert result.stderr == "error: subject 'a..b' has an empty token\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--subject", "a"),
        ("--live", "S", "--payload", "5"),
        ("--live", "S", "--storage", "file"),
        ("--payload", "-1"),
        ("--payload", "1", "--header", "x"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("size", *arguments).exit_code == 2
