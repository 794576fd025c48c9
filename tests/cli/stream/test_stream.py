"""`twinstream stream`."""

from __future__ import annotations

import json
import re
import time

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.streams import fill
from tests.cli.terminal import on_terminal
from tests.soak import LONGEST
from twinstream.cli.stream.subjects import SHOWN
from twinstream.models import StreamConfig, StreamSource
from twinstream.testing import NatsServer


def test_ls_shows_the_subjects_of_a_stream(run: Run, stream: str) -> None:
    run("pub", f"{stream}.a", "x", "-n", "1234")
    result = run("stream", "ls")
    assert result.exit_code == 0, result.stderr
    (row,) = [line.split() for line in result.stdout.splitlines() if line.startswith(f"{stream}\t")]
    assert row[1:3] == [f"{stream}.>", "1234"]


def test_ls_filters_by_subject(run: Run, stream: str) -> None:
    names = [line["config"]["name"] for line in json_lines(run("stream", "ls", "--json"))]
    assert stream in names
    found = json_lines(run("stream", "ls", "--subject", f"{stream}.x", "--json"))
    assert [line["config"]["name"] for line in found] == [stream]
    assert run("stream", "ls", "--subject", "nothing.here").stdout == ""


def test_info_shows_configuration_state_and_consumers(run: Run, stream: str) -> None:
    run("pub", f"{stream}.a", "x", "-n", "3")
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


def test_info_shows_how_far_copies_are_behind(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    fill(jet, stream, 2)
    missing = StreamSource(name=f"{stream}-GONE", filter_subject="gone.>")
    sources = [StreamSource(name=stream), missing]
    jet.create_stream(StreamConfig(name=f"{stream}-ALL", sources=sources))
    jet.create_stream(StreamConfig(name=f"{stream}-SAME", mirror=sources[0]))
    both = rf"source\t{stream}, 0 behind, heard .*s ago\n"
    gone = rf"source\t{stream}-GONE gone\.>, 0 behind, never heard, stream not found\n"
    shown_in_time(run, f"{stream}-ALL", both)
    shown_in_time(run, f"{stream}-ALL", gone)
    shown_in_time(run, f"{stream}-SAME", rf"mirror of\t{stream}, 0 behind, heard .*s ago\n")


def shown_in_time(run: Run, stream: str, pattern: str) -> None:
    """Show a stream repeatedly until the output contains this text."""
    deadline = time.monotonic() + LONGEST
    while not re.search(pattern, re.sub(" +\n", "\n", run("stream", "info", stream).stdout)):
        assert time.monotonic() < deadline, run("stream", "info", stream).stdout


def test_info_of_nothing_names_it(run: Run) -> None:
    result = run("stream", "info", "NO_SUCH_STREAM")
    assert result.exit_code == 3
    assert "NO_SUCH_STREAM" in result.stderr


def test_purge_asks_and_prints_the_number(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    fill(jet, stream, 5)
    refused = run("stream", "purge", stream, input="n\n")
    assert refused.exit_code == 1
    assert f"from {stream} (5 messages, 0 consumers)?" in refused.stderr
    assert jet.get_stream(stream).cached_info.state.messages == 5
    done = run("stream", "purge", stream, "--before", "3", input="y\n")
    assert done.stdout == f"removed 2 messages from {stream}\n"
    (line,) = json_lines(
        run("stream", "purge", stream, "--subject", f"{stream}.4", "--yes", "--json")
    )
    assert line == {"stream_name": stream, "purged": 1}
    assert run("stream", "purge", stream, "--keep", "1", "-y").exit_code == 0
    both = run("stream", "purge", stream, "--keep", "1", "--before", "2", "-y")
    assert both.exit_code == 2


def test_purge_of_an_empty_subject_is_no_purge_of_all(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    fill(jet, stream, 2)
    for subject in ("", "a b"):
        failed = run("stream", "purge", stream, "--subject", subject, "--yes")
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert "error: " in failed.stderr
    assert jet.get_stream(stream).info().state.messages == 2


def test_rmm_removes_one_message_after_confirmation(
    run: Run, jet: js_sync.JetStream, stream: str
) -> None:
    fill(jet, stream, 3)
    refused = run("stream", "rmm", stream, "2", input="n\n")
    assert refused.exit_code == 1
    assert f"Remove message 2 of {stream} ({stream}.1, 0 B)?" in refused.stderr
    assert jet.get_stream(stream).cached_info.state.messages == 3
    done = run("stream", "rmm", stream, "2", input="y\n")
    assert done.stdout == f"removed message 2 from {stream}\n"
    assert json_lines(run("stream", "rmm", stream, "1", "--erase", "-y", "--json")) == [
        {"stream_name": stream, "removed": 1}
    ]
    assert [message.seq for message in jet.get_stream(stream).read()] == [3]
    for options in ([], ["--yes"]):
        gone = run("stream", "rmm", stream, "2", *options, input="y\n")
        assert (gone.exit_code, gone.stdout) == (3, "")
        assert "error: " in gone.stderr


def test_rm_deletes_only_after_confirmation(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    assert run("stream", "rm", stream, input="").exit_code == 1
    assert jet.get_stream(stream).name == stream
    unasked = run("stream", "rm", stream)
    assert unasked.exit_code == 1
    assert "error: the question was not answered, nothing was done; add --yes" in unasked.stderr
    assert run("stream", "rm", stream, "--yes").stdout == f"deleted {stream}\n"
    with pytest.raises(js_sync.StreamNotFound):
        jet.get_stream(stream)
    gone = run("stream", "rm", stream, "--yes")
    assert gone.exit_code == 3
    assert "stream ls" in gone.stderr


def test_json_asks_no_question(run: Run, stream: str) -> None:
    for command in (
        ("stream", "rm", stream),
        ("stream", "purge", stream),
        ("stream", "rmm", stream, "1"),
        ("stream", "seal", stream),
        ("stream", "peer-remove", stream, "n1"),
        ("consumer", "rm", stream, "worker"),
        ("consumer", "reset", stream, "worker"),
        ("lock", "release", "job"),
    ):
        refused = run(*command, "--json", input="y\n")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--json cannot ask; add --yes" in refused.stderr


def test_seal_is_for_ever(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    fill(jet, stream, 1)
    assert "permanently?" in run("stream", "seal", stream, input="n\n").stderr
    assert json_lines(run("stream", "seal", stream, "-y", "--json")) == [
        {"stream_name": stream, "sealed": True}
    ]
    failed = run("pub", f"{stream}.x", "y")
    assert failed.exit_code == 1
    assert "sealed" in failed.stderr


def test_subjects_with_most_messages_come_first(
    run: Run, server: NatsServer, jet: js_sync.JetStream, stream: str
) -> None:
    fill(jet, stream, SHOWN + 5)
    jet.publish(f"{stream}.0")
    shown = on_terminal(["stream", "subjects", stream], 80, TWINSTREAM_URL=server.url)
    rows = [line.split() for line in shown.out.splitlines() if line.startswith(stream)]
    assert rows[0] == [f"{stream}.0", "2"]
    assert len(rows) == SHOWN
    assert "and 5 more; --all shows them" in shown.out
    assert len(run("stream", "subjects", stream).stdout.splitlines()) == SHOWN + 5
    assert json_lines(run("stream", "subjects", stream, f"{stream}.3", "--json")) == [
        {"subject": f"{stream}.3", "messages": 1}
    ]
    assert run("stream", "subjects", stream, "other").stdout == ""


def test_subjects_are_harmless(run: Run, jet: js_sync.JetStream, stream: str) -> None:
    for subject in (f"{stream}.a", f"{stream}.語", f"{stream}.\x9b"):
        jet.publish(subject)
    shown = run("stream", "subjects", stream).stdout
    assert "\\u009b" in shown
    assert run("stream", "subjects", stream, "--all").stdout == shown


def test_single_server_reports_that_it_has_no_cluster(run: Run, stream: str) -> None:
    for command in (
        ("stream", "step-down", stream),
        ("stream", "peer-remove", stream, "n1", "--yes"),
    ):
        failed = run(*command)
        assert failed.exit_code == 1
        assert "clustering" in failed.stderr
