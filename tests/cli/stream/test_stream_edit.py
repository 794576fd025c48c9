"""`twinstream stream edit`, `copy`, `find` and `report`."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.streams import fill
from twinstream.models import StreamConfig, StreamSource


def names(run: Run, *words: str) -> list[str]:
    return [line["config"]["name"] for line in json_lines(run("stream", *words, "--json"))]


def test_edit_changes_the_given_settings_only(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    words = ("stream", "edit", stream, "--max-age", "7d", "--description", "tea")
    dry = run(*words, "--dry-run")
    assert (dry.exit_code, dry.stdout.splitlines()) == (
        0,
        ["description: not set → tea", "max_age: 0s → 7d"],
    )
    declined = run(*words, input="n\n")
    assert (declined.exit_code, f"Change {stream}?" in declined.stderr) == (1, True)
    assert jet.get_stream(stream).cached_info.config.description is None
    assert run(*words, "-f").exit_code == 0
    config = jet.get_stream(stream).cached_info.config
    assert (config.max_age, config.description) == (timedelta(days=7), "tea")
    assert config.subjects == [f"{stream}.>"]
    assert run(*words).stdout == "nothing to change\n"
    (made,) = json_lines(run("stream", "edit", stream, "--max-msgs", "5", "--yes", "--json"))
    assert made["config"]["max_msgs"] == 5


def test_edit_refuses_what_it_cannot_do(run: Run, stream: str) -> None:
    assert run("stream", "edit", stream).exit_code == 2
    assert run("stream", "edit", "NO-SUCH", "--max-msgs", "5", "-f").exit_code == 3
    refused = run("stream", "edit", stream, "--storage", "memory", "-f")
    assert (refused.exit_code, "storage" in refused.stderr) == (1, True)
    asked = run("stream", "edit", stream, "--max-msgs", "5", "--json")
    assert (asked.exit_code, "add --yes" in asked.stderr) == (2, True)


def test_copy_takes_the_settings(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    run("stream", "edit", stream, "--max-age", "7d", "--metadata", "team=tea", "-f")
    fill(jet, stream, 3)
    refused = run("stream", "copy", stream, f"{stream}-2")
    assert (refused.exit_code, "give --subjects" in refused.stderr) == (2, True)
    made = run(
        "stream", "copy", stream, f"{stream}-2", "--subjects", f"{stream}-2", "--replicas", "1"
    )
    assert made.exit_code == 0, made.stderr
    info = jet.get_stream(f"{stream}-2").info()
    assert (info.config.max_age, info.state.messages) == (timedelta(days=7), 0)
    assert (info.config.metadata or {})["team"] == "tea"
    assert run("stream", "copy", "NO-SUCH", "X").exit_code == 3


@pytest.fixture
def some(jet: js_sync.JetStream, stream: str) -> str:
    """Streams with a common prefix: full, empty, mirror and sourced."""
    fill(jet, stream, 2)
    jet.create_stream(StreamConfig(name=f"{stream}-EMPTY", subjects=[f"{stream}-E"]))
    origin = StreamSource(name=f"{stream}-EMPTY")
    jet.create_stream(StreamConfig(name=f"{stream}-MIRROR", mirror=origin))
    jet.create_stream(StreamConfig(name=f"{stream}-SOURCED", sources=[origin]))
    return stream


def test_find_selects_by_all_conditions(run: Run, some: str) -> None:
    def found(*words: str) -> set[str]:
        return {name.removeprefix(some) for name in names(run, "find", *words) if some in name}

    assert found("--empty") == {"-EMPTY", "-MIRROR", "-SOURCED"}
    assert found("--empty", "--invert") == {""}
    assert found("--mirrored") == {"-MIRROR"}
    assert found("--sourced") == {"-SOURCED"}
    assert found("--mirrored", "--sourced") == set()
    assert found("--consumers", "0", "--idle", "1ns", "--created", "1ns") >= {"", "-EMPTY"}
    assert found("--idle", "1h") == set()
    assert found("--replicas", "1") == {"", "-EMPTY", "-MIRROR", "-SOURCED"}
    assert f"{some}-MIRROR\t" in run("stream", "find", "--mirrored").stdout
    assert run("stream", "find").exit_code == 2


def test_report_sorts_by_what_streams_hold(run: Run, some: str) -> None:
    by_name = names(run, "report", "--sort", "name")
    assert by_name == sorted(by_name)
    rows = [line.split("\t") for line in run("stream", "report").stdout.splitlines()]
    sizes = [int(row[4]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    (mine,) = [row for row in rows if row[0] == some]
    assert mine[1:4] == ["file", "0", "2"]
    first = json.loads(run("stream", "report", "--json").stdout.splitlines()[0])
    assert first["state"]["bytes"] == sizes[0]
