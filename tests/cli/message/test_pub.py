"""`twinstream pub`."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

import js_sync
from tests.cli.output import Run, json_lines
from tests.cli.terminal import COMMAND
from tests.unhurried import UNHURRIED
from twinstream.cli.message.payloads import at_rate
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer


def stored(server: NatsServer, stream: str) -> list[js_sync.StreamMessage]:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        found = nc.jetstream().get_stream(stream)
        return [found.get_message(seq) for seq in range(1, found.info().state.last_seq + 1)]


def test_message_is_stored_and_its_sequence_printed(
    run: Run, server: NatsServer, stream: str
) -> None:
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
    assert "already known" in run("pub", f"{stream}.new", "x", "--msg-id", "a").stdout
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


ODD = b"\0\377{n}\376 {{n}}"
"""Bytes that are not text, with the placeholders of the command."""


@pytest.mark.parametrize("form", [(), ("--lines",), ("--nul",)], ids=str)
@pytest.mark.parametrize("count", ["1", "2"])
def test_the_bytes_of_files_and_of_standard_input_are_not_changed(
    run: Run, server: NatsServer, stream: str, tmp_path: Path, form: tuple[str, ...], count: str
) -> None:
    data = ODD.replace(b"\0", b"") if form == ("--nul",) else ODD
    file = tmp_path / "payload.bin"
    file.write_bytes(data)
    more = (*form, "-n", count, "--msg-id", "{n}")
    assert run("pub", f"{stream}.a", "-f", str(file), *more).exit_code == 0
    more = (*form, "-n", count)
    assert run("pub", f"{stream}.a", *more, input=data).exit_code == 0
    assert run("pub", f"{stream}.a", "-", *more, input=data).exit_code == 0
    assert [each.data for each in stored(server, stream)] == [data] * (3 * int(count))


def test_a_template_is_filled_in_where_the_user_asks_for_it(
    run: Run, server: NatsServer, stream: str, tmp_path: Path
) -> None:
    file = tmp_path / "payload.bin"
    file.write_bytes(ODD)
    more = ("--template", "-n", "2")
    assert run("pub", f"{stream}.a", "-f", str(file), *more).exit_code == 0
    assert run("pub", f"{stream}.a", "--template", "--lines", input="{n}\n{n}").exit_code == 0
    found = [each.data for each in stored(server, stream)]
    assert found == [b"\0\3771\376 {n}", b"\0\3772\376 {n}", b"1", b"2"]


def test_arguments_can_contain_the_placeholder_itself(
    run: Run, server: NatsServer, stream: str
) -> None:
    literal = ("{{n}} {n} {{{n}}}", "--msg-id", "{{n}}", "-H", "N: {{n}}")
    assert run("pub", f"{stream}.{{{{n}}}}", *literal).exit_code == 0
    (found,) = stored(server, stream)
    assert (found.subject, found.data) == (f"{stream}.{{n}}", b"{n} 1 {{n}}")
    assert (found.headers["Nats-Msg-Id"], found.headers["N"]) == ("{n}", "{n}")


def test_only_the_end_of_a_line_is_removed(run: Run, server: NatsServer, stream: str) -> None:
    assert run("pub", f"{stream}.a", "--lines", input=b"a\r\r\nb\r\nc\r").exit_code == 0
    assert [each.data for each in stored(server, stream)] == [b"a\r", b"b", b"c\r"]


def test_empty_input_by_lines_publishes_nothing_with_a_note(run: Run, stream: str) -> None:
    result = run("pub", f"{stream}.a", "--lines", input="")
    assert result.exit_code == 0
    assert "there was no input" in result.stderr


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


def test_messages_are_cut_at_nul(run: Run, server: NatsServer, stream: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"a\nb\0c\0")
    two.write_bytes(b"d")
    assert run("pub", f"{stream}.a", "-0", "-f", str(one), "-f", str(two)).exit_code == 0
    assert run("pub", f"{stream}.a", "--nul", input=b"x" * 100_000 + b"\0y").exit_code == 0
    datas = [message.data for message in stored(server, stream)]
    assert datas == [b"a\nb", b"c", b"d", b"x" * 100_000, b"y"]


def test_several_files_are_several_messages(
    run: Run, server: NatsServer, stream: str, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    files = ("-f", str(tmp_path / "one"), "-f", str(tmp_path / "two"))
    assert run("pub", f"{stream}.a", *files, "-n", "2").exit_code == 0
    assert [message.data for message in stored(server, stream)] == [b"one", b"two"] * 2


def test_conditions_and_what_is_removed(run: Run, server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        config = StreamConfig(
            name="PUBC", subjects=["pubc.>"], allow_rollup_hdrs=True, allow_msg_ttl=True
        )
        nc.jetstream().create_stream(config)
    first = ("--last-seq", "0", "--last-subject-seq", "0", "--msg-id", "1", "--ttl", "600")
    assert run("pub", "pubc.a", *first).exit_code == 0
    assert run("pub", "pubc.b", "--last-msg-id", "1").exit_code == 0
    other = ("--last-subject", "pubc.b", "--last-subject-seq", "2")
    assert run("pub", "pubc.c", *other).exit_code == 0
    result = run("pub", "pubc.c", "--last-seq", "1", "--json")
    assert result.exit_code == 1
    assert json_lines(result)[0]["kind"] == "WrongLastSequence"
    assert run("pub", "pubc.c", "--rollup", "all", "--ttl", "never").exit_code == 0
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        found = nc.jetstream().get_stream("PUBC")
        assert found.cached_info.state.messages == 1
        headers = found.get_message(4).headers
        assert (headers["Nats-Rollup"], headers["Nats-TTL"]) == ("all", "never")
    assert "'ever' is not a valid" in run("pub", "pubc.a", "--ttl", "ever").stderr


def test_a_rate_may_ask_for_longer_than_a_system_can_wait() -> None:
    class Asked(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return bool(timeout)

    waits: list[float] = []
    assert list(at_rate(iter([b"1", b"2"]), 1e-12, Asked())) == [b"1"]
    assert max(waits) == threading.TIMEOUT_MAX


def test_rate_limits_messages(run: Run, stream: str) -> None:
    began = time.monotonic()
    assert run("pub", f"{stream}.a", "x", "-n", "5", "--rate", "20").exit_code == 0
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pub", "a", "--lines", "--nul"), "not both"),
        (("pub", "a", "x", "--last-subject", "b"), "--last-subject-seq"),
        (("pub", "a", "x", "--rate", "0"), "--rate"),
        (("pub", "a", "x", "--file", __file__), "once"),
        (("pub", "a", "x", "--header", "no colon"), "Name: value"),
        (("pub", "a", "--file", "no-such-file"), "no-such-file"),
    ],
)
def test_wrong_usage_names_the_mistake(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_argument_may_be_any_bytes(server: NatsServer, stream: str) -> None:
    command = [*COMMAND, "pub", f"{stream}.a", b"\xff{n}"]
    environment = os.environ | {"TWINSTREAM_URL": server.url}
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        assert nc.jetstream().get_stream(stream).get_message(1).data == b"\xff1"


def test_white_space_that_is_none_to_the_server_stays_in_a_header(
    run: Run, server: NatsServer, stream: str
) -> None:
    assert run("pub", f"{stream}.\xa0", "x", "--header", "K: \xa0v ").exit_code == 0
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        message = nc.jetstream().get_stream(stream).get_message(1)
    assert (message.subject, message.headers["K"]) == (f"{stream}.\xa0", "\xa0v")


def test_a_subject_with_a_line_break_never_reaches_the_wire(run: Run) -> None:
    result = run("pub", "a\r\nPUB b 0", "x")
    assert result.exit_code == 1
    assert "subject" in result.stderr


@pytest.mark.parametrize("option", ["--msg-id", "--last-msg-id"])
@pytest.mark.parametrize("id", [" a", "a ", " ", ""])
def test_an_id_that_the_server_would_change_is_a_usage_error(
    run: Run, stream: str, option: str, id: str
) -> None:
    result = run("pub", f"{stream}.a", "x", option, id)
    assert result.exit_code == 2
    assert option in result.stderr
    assert "blank" in result.stderr


@pytest.mark.parametrize(
    "word",
    ["Count", "Cnt", " .Count ", "TimeStamp", "Time", "Unix", "UnixNano", "ID", "Random 1 10"],
)
@pytest.mark.parametrize("place", ["SUBJECT", "DATA", "--header", "--msg-id", "message 2"])
def test_template_words_of_nats_are_refused_or_named(
    run: Run, server: NatsServer, stream: str, word: str, place: str
) -> None:
    word = f"{{{{{word}}}}}"
    subject = f"{stream}.{word}" if place == "SUBJECT" else f"{stream}.a"
    options = {
        "DATA": [word],
        "--header": ["x", "-H", f"N: {word}"],
        "--msg-id": ["x", "--msg-id", word],
        "message 2": ["--lines"],
    }
    given = options.get(place, ["x"])

    refused = run("pub", subject, *given, "--template", input=f"x\n{word}\n")
    assert refused.exit_code == (1 if place == "message 2" else 2)
    assert f"{place}: {word} is a word of the `nats` command and means nothing" in refused.stderr
    assert "{n} is the number of the message" in refused.stderr
    assert word not in "".join(f"{each.subject}{each.data!r}" for each in stored(server, stream))

    sent = run("pub", subject, *given, "--json", input=f"x\n{word}\n{word}\n")
    assert sent.stderr.startswith(
        f"{place}: {word} is a word of the `nats` command, and is sent as it stands;"
        " {n} is the number of the message\n"
    )
    assert sent.stderr.count("`nats`") == 1
    if place == "SUBJECT" and " " in word:  # no subject has blanks
        assert sent.exit_code == 1
        return
    assert sent.exit_code == 0
    assert [line["stream"] for line in json_lines(sent)]
    last = stored(server, stream)[-1]
    shown = f"{last.subject} {last.data.decode()} {list(last.headers.pairs)}"
    assert word in shown


def test_messages_before_a_refused_word_are_stored_and_reported(
    run: Run, server: NatsServer, stream: str
) -> None:
    given = ("--lines", "--template")
    shown = run("pub", f"{stream}.a", *given, "--json", input="one\n{n}\n{{ID}}\nfour\n")
    assert [line["seq"] for line in json_lines(shown)] == [1, 2]
    assert json.loads(shown.stderr)["error"].endswith("; it and later messages were not sent")
    assert [each.data for each in stored(server, stream)] == [b"one", b"2"]
    lost = run("pub", "no.stream", *given, input="one\n{{ID}}\n")
    assert "no stream has this subject" in lost.stderr
    none = run("pub", f"{stream}.a", "--template", input="{{ID}}")
    assert none.stderr.startswith("error: message 1: {{ID}} is a word")
    assert "no input" not in none.output


def test_other_words_in_braces_are_payload(run: Run, server: NatsServer, stream: str) -> None:
    for text in ("{{Counter}}", "{{name}}", "{Count}", "{{{n}}}", '{"a": {"ID": 1}}'):
        assert run("pub", f"{stream}.a", text).stderr == ""
        assert run("pub", f"{stream}.a", "--template", input=text).exit_code == 0


def test_requests_and_answers_with_template_words_are_named(run: Run, stream: str) -> None:
    asked = run("req", f"{stream}.a", "{{ID}}", "-H", "T: {{Time}}")
    assert asked.exit_code == 0
    assert asked.stderr == (
        "--header: {{Time}} is a word of the `nats` command, and is sent as it stands;"
        " let the shell fill in such values\n"
    )
