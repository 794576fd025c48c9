"""`twinstream get`."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from tests.cli.output import Run, in_time, json_lines
from tests.cli.terminal import on_terminal, steady
from tests.fake.answers import CONSUMER
from tests.odd_messages import publish_raw
from twinstream.testing import FakePeer, FakeServer, NatsServer, ScriptError


@pytest.fixture
def filled(run: Run, stream: str) -> str:
    for number in (1, 2):
        run("pub", f"{stream}.s{{n}}", f"{number}-{{n}}", "-n", "5", "-H", "Colour: blue")
    return stream


def seqs(result: object) -> list[int]:
    return [line["seq"] for line in json_lines(result)]  # type: ignore[arg-type]


def test_all_one_last_and_the_last_of_each(run: Run, filled: str) -> None:
    assert seqs(run("get", filled, "--json")) == list(range(1, 11))
    (one,) = json_lines(run("get", filled, "--seq", "7", "--json"))
    assert (one["subject"], one["data"]) == (f"{filled}.s2", "2-2")
    assert one["headers"] == {"Colour": ["blue"]}
    assert seqs(run("get", filled, "--last", f"{filled}.s3", "--json")) == [8]
    assert seqs(run("get", filled, "--each", "--json")) == [6, 7, 8, 9, 10]
    assert seqs(run("get", filled, "--each", "--subject", f"{filled}.s1", "--json")) == [6]


def stalled(peer: FakePeer) -> None:
    """Answer requests for the stream S and its consumers, but deliver no message."""
    times = dict.fromkeys(("first_ts", "last_ts"), CONSUMER["created"])
    counts = {"messages": 1, "bytes": 1, "first_seq": 1, "last_seq": 1, "consumer_count": 0}
    about = {"config": {"name": "S"}, "created": CONSUMER["created"], "state": counts | times}
    with suppress(ScriptError):  # a client that could not connect in time
        peer.handshake()
    for request in peer.follow():
        if "STREAM.INFO.S" in request.line:
            peer.answer(request, about)
        elif "CONSUMER.CREATE.S" in request.line:
            peer.answer(request, CONSUMER)


@pytest.mark.parametrize("each", [(), ("--each",)], ids=str)
def test_timeout_applies_to_the_whole_read(run: Run, each: tuple[str]) -> None:
    with FakeServer(rest=stalled) as server:
        result = in_time(
            lambda: run("get", "S", *each, "--timeout", "0.7", "--server", server.url),
            lambda result: "no progress" in result.stderr,
        )
    assert result.exit_code == 1
    assert "no progress at sequence 1 for 0.7 s" in result.stderr


def test_ranges_by_sequence_and_time(run: Run, filled: str) -> None:
    assert seqs(run("get", filled, "--from", "3", "--to", "6", "--json")) == [3, 4, 5]
    filters = ("--subject", f"{filled}.s1", "--subject", f"{filled}.s2")
    assert seqs(run("get", filled, *filters, "--json")) == [1, 2, 6, 7]
    assert seqs(run("get", filled, "--from", "2020-01-01T00:00:00Z", "-n", "2", "--json")) == [1, 2]
    late = run("get", filled, "--from", "2099-01-01T00:00:00+02:00")
    assert (late.exit_code, late.stdout) == (0, "")
    assert late.stderr == ""


def test_times_count_to_the_nanosecond(run: Run, filled: str) -> None:
    (third,) = json_lines(run("get", filled, "--seq", "3", "--json"))
    seconds, rest = divmod(third["time_ns"], 1_000_000_000)
    start = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
    assert seqs(run("get", filled, "--to", f"{start}.{rest:09}Z", "--json"))[-1] == 2
    assert seqs(run("get", filled, "--from", f"{start}.{rest:09}Z", "--json"))[0] == 3


def test_a_count_beyond_64_bits_means_all(run: Run, filled: str) -> None:
    assert len(seqs(run("get", filled, "-n", "9" * 30, "--json"))) == 10


def test_message_is_printed_with_subject_time_headers_and_payload(run: Run, filled: str) -> None:
    result = run("get", filled, "--seq", "7")
    head, header, payload = result.stdout.splitlines()
    assert head.startswith(f"{filled} 7  {filled}.s2  20")
    assert header == "  Colour: blue"
    assert payload == "2-2"
    assert result.stderr == ""


@pytest.mark.parametrize("payload", [b"\0\xff{n}\xfe", b"text\r\n", b""], ids=repr)
def test_raw_writes_the_bytes_of_one_message(run: Run, stream: str, payload: bytes) -> None:
    assert run("pub", f"{stream}.a", "-", input=payload).exit_code == 0
    for which in (("--seq", "1"), ("--last", f"{stream}.a")):
        assert run("get", stream, *which, "--raw").stdout_bytes == payload


def test_a_payload_that_is_no_text_has_its_size_and_the_way_to_its_bytes(
    run: Run, stream: str
) -> None:
    assert run("pub", f"{stream}.a", input=b"\xff").exit_code == 0
    assert "(1 bytes, not text: see --json)" in run("get", stream).stdout
    (line,) = json_lines(run("get", stream, "--json"))
    assert line["data_base64"] == "/w=="


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--raw",), "--raw is for one message"),
        (("--each", "--raw"), "--raw is for one message"),
        (("--seq", "1", "--raw", "--json"), "--raw or --json"),
        (("--seq", "1", "--each"), "one of"),
        (("--seq", "1", "--subject", "a"), "--subject"),
        (("--from", "0"), "neither"),
        (("--from", "soon"), "neither"),
        (("--from", "2026-01-31T08:00:00"), "has no zone; add Z for UTC"),
        (("--to", "2026-01-31"), "has no zone"),
    ],
)
def test_wrong_usage_names_the_mistake(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run("get", "S", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_what_is_not_there_is_an_error(run: Run, filled: str) -> None:
    for arguments in (("--seq", "99"), ("--last", "nothing.here")):
        result = run("get", filled, *arguments)
        assert result.exit_code == 3
        assert "no message found" in result.stderr
    assert run("get", "NO_SUCH_STREAM").exit_code == 3


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_messages_that_no_client_would_send_are_shown(
    run: Run, server: NatsServer, stream: str, form: tuple[str, ...]
) -> None:
    messages = publish_raw(server.port, f"{stream}.odd")
    assert run("pub", f"{stream}.odd", "last").exit_code == 0
    count = len(messages) + 1
    for command in (
        ("get", stream),
        ("get", stream, "--each"),
        ("consume", stream, "--count", str(count)),
    ):
        shown = run(*command, *form)
        assert shown.exit_code == 0, shown.output
        assert "last" in shown.stdout


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals exist on POSIX only")
def test_a_range_that_ends_early_says_where_to_continue(server: NatsServer, filled: str) -> None:
    def last_line(*arguments: str) -> str:
        shown = on_terminal(["get", filled, *arguments], 120, TWINSTREAM_URL=server.url)
        return steady(shown.out).splitlines()[-1]

    assert last_line("--count", "3") == "3 messages; for the next ones --from 4"
    only = ("--from", "4", "--subject", f"{filled}.s2")
    assert last_line(*only, "--count", "1") == "1 message; for the next ones --from 8"
    assert last_line(*only) == "1 message"
    assert last_line("--each", "--count", "2") == "2 messages"
    assert last_line("--seq", "3", "--count", "1") == "1 message"
