"""``twinstream pub``."""

from __future__ import annotations

from pathlib import Path

import pytest

import js_sync
from js_testing import NatsServer
from tests.cli.output import Run, json_lines


def stored(server: NatsServer, stream: str) -> list[js_sync.StreamMessage]:
    with js_sync.connect(server.url) as nc:
        found = nc.jetstream().get_stream(stream)
        return [found.get_message(seq) for seq in range(1, found.info().state.last_seq + 1)]


def test_a_message_is_stored_and_its_place_told(run: Run, server: NatsServer, stream: str) -> None:
    result = run("pub", f"{stream}.new", "hello", "-H", "Colour: blue", "-H", "Colour: red")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"stored in {stream} at sequence 1\n"
    (message,) = stored(server, stream)
    assert (message.subject, message.data) == (f"{stream}.new", b"hello")
    assert message.headers.get_all("Colour") == ["blue", "red"]


def test_the_same_id_is_stored_once(run: Run, server: NatsServer, stream: str) -> None:
    first = run("pub", f"{stream}.new", "hello", "--msg-id", "a", "--json")
    again = run("pub", f"{stream}.new", "hello", "--msg-id", "a", "--json")
    assert json_lines(first) == [{"stream": stream, "seq": 1}]
    assert json_lines(again) == [{"stream": stream, "seq": 1, "duplicate": True}]
    assert "known already" in run("pub", f"{stream}.new", "x", "--msg-id", "a").stdout
    assert len(stored(server, stream)) == 1


def test_count_fills_in_the_number(run: Run, server: NatsServer, stream: str) -> None:
    result = run(
        "pub", f"{stream}.s{{n}}", '{"id":{n}}', "-n", "3", "--msg-id", "m{n}", "-H", "N:{n}"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"3 stored in {stream}, the last at sequence 3 (")
    messages = stored(server, stream)
    assert [message.subject for message in messages] == [f"{stream}.s{n}" for n in (1, 2, 3)]
    assert [message.data for message in messages] == [b'{"id":1}', b'{"id":2}', b'{"id":3}']
    assert [message.headers["N"] for message in messages] == ["1", "2", "3"]


def test_standard_input_is_one_message_or_a_message_a_line(
    run: Run, server: NatsServer, stream: str
) -> None:
    assert run("pub", f"{stream}.a", input="one\ntwo\n").exit_code == 0
    assert run("pub", f"{stream}.a", "-", "--lines", input="one\ntwo\n").exit_code == 0
    assert [message.data for message in stored(server, stream)] == [b"one\ntwo\n", b"one", b"two"]


def test_a_file_is_sent_as_it_is(run: Run, server: NatsServer, stream: str, tmp_path: Path) -> None:
    file = tmp_path / "payload.bin"
    file.write_bytes(b"\x00\xff\r\n")
    assert run("pub", f"{stream}.a", "--file", str(file)).exit_code == 0
    assert stored(server, stream)[0].data == b"\x00\xff\r\n"


def test_empty_input_by_lines_publishes_nothing_and_says_so(run: Run, stream: str) -> None:
    result = run("pub", f"{stream}.a", "--lines", input="")
    assert result.exit_code == 0
    assert "empty" in result.stderr


def test_a_subject_without_a_stream_fails_with_the_reason(run: Run) -> None:
    result = run("pub", "nobody.listens", "x")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "nobody.listens" in result.stderr


def test_a_failure_is_json_too(run: Run, stream: str) -> None:
    result = run("pub", f"{stream}.a", "x", "--stream", "OTHER", "--json")
    assert result.exit_code == 1
    (line,) = json_lines(result)
    assert line["err_code"] == 10060


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pub", "a", "x", "--file", __file__), "once"),
        (("pub", "a", "x", "--header", "no colon"), "Name: value"),
        (("pub", "a", "--file", "no-such-file"), "no-such-file"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_subject_with_a_line_break_never_reaches_the_wire(run: Run) -> None:
    result = run("pub", "a\r\nPUB b 0", "x")
    assert result.exit_code == 1
    assert "subject" in result.stderr
