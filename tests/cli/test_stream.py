"""``twinstream stream ls`` and ``stream info``."""

from __future__ import annotations

import json

from tests.cli.output import Run, json_lines


def test_ls_shows_what_a_stream_holds(run: Run, stream: str) -> None:
    run("pub", f"{stream}.a", "x", "-n", "1234")
    result = run("stream", "ls")
    assert result.exit_code == 0, result.stderr
    (row,) = [line.split() for line in result.stdout.splitlines() if line.startswith(f"{stream} ")]
    assert row[1:3] == [f"{stream}.>", "1,234"]


def test_ls_filters_by_subject(run: Run, stream: str) -> None:
    names = [line["config"]["name"] for line in json_lines(run("stream", "ls", "--json"))]
    assert stream in names
    found = json_lines(run("stream", "ls", "--subject", f"{stream}.x", "--json"))
    assert [line["config"]["name"] for line in found] == [stream]
    assert "no streams" in run("stream", "ls", "--subject", "nothing.here").stdout


def test_info_shows_configuration_state_and_consumers(run: Run, stream: str) -> None:
    run("pub", f"{stream}.a", "x", "-n", "3")
    assert "no consumers" in run("stream", "info", stream).stdout
    run("consume", stream, "worker", "--create", "-n", "1", "--no-ack")
    result = run("stream", "info", stream)
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert ["name", stream] in rows
    assert ["messages", "3"] in rows
    assert ["sequences", "1", "to", "3"] in rows
    assert ["worker", "-", "2", "1", "0", "0"] in rows


def test_info_as_json_is_one_document(run: Run, stream: str) -> None:
    run("consume", stream, "worker", "--create", "--wait", "0.1")
    document = json.loads(run("stream", "info", stream, "--json").stdout)
    assert document["config"]["name"] == stream
    assert document["state"]["messages"] == 0
    assert [one["name"] for one in document["consumers"]] == ["worker"]


def test_info_of_nothing_names_it(run: Run) -> None:
    result = run("stream", "info", "NO_SUCH_STREAM")
    assert result.exit_code == 1
    assert "NO_SUCH_STREAM" in result.stderr
