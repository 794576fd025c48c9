"""Parser and writer: any split of any bytes gives the same messages and events."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.frames import hmsg, msg
from tests.hooked import hooked
from twinstream.core.wire import protocol
from twinstream.core.wire.protocol import Frame, Info, Ok, Parser, Ping, Pong, Refusal
from twinstream.errors import ProtocolError

Event = Info | Ping | Pong | Ok | Refusal

SUBJECTS = st.text("abcXYZ$_-0.", min_size=1, max_size=12).map(str.encode)
SIDS = st.sampled_from([b"1", b"2", b"37", b"38"])
# Payloads look like protocol now and then.
PAYLOADS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"", b"\r\n", b"MSG a 1 3\r\nabc\r\n", b"PING\r\n", b"\n\n", b"\r", b"+OK"]),
)
BLOCKS = st.sampled_from(
    [b"NATS/1.0\r\n\r\n", b"NATS/1.0 408 Request Timeout\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n"]
)
TEXTS = st.text('az"\\{}é ', max_size=4)
VALUES = st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3)


class Piece:
    """The bytes of one server operation, and the expected frame or event."""

    def __init__(
        self, data: bytes, *, frame: tuple[bytes, Frame] | None = None, event: Event | None = None
    ) -> None:
        self.data = data
        self.frame = frame
        self.event = event

    def __repr__(self) -> str:
        return repr(self.data)


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    kind = draw(st.sampled_from(["MSG", "MSG", "HMSG", "PING", "PONG", "+OK", "-ERR", "INFO"]))
    match kind:
        case "MSG" | "HMSG":
            subject, sid, payload = draw(SUBJECTS), draw(SIDS), draw(PAYLOADS)
            reply = draw(st.just(b"") | SUBJECTS)
            if kind == "MSG":
                frame = (subject, reply, 0, payload + b"\r\n")
                return Piece(msg(subject, sid, payload, reply), frame=(sid, frame))
            head = draw(BLOCKS)
            frame = (subject, reply, len(head), head + payload + b"\r\n")
            return Piece(hmsg(subject, sid, head, payload, reply), frame=(sid, frame))
        case "PING":
            return Piece(b"PING\r\n", event=Ping())
        case "PONG":
            return Piece(b"PONG\r\n", event=Pong())
        case "+OK":
            return Piece(b"+OK\r\n", event=Ok())
        case "-ERR":
            return Piece(b"-ERR 'Unknown Protocol'\r\n", event=Refusal("Unknown Protocol"))
        case _:
            values = draw(VALUES)
            return Piece(b"INFO " + json.dumps(values).encode() + b" \r\n", event=Info(values))


class Reading:
    """A parser that records its frames and events."""

    def __init__(self) -> None:
        self.frames: dict[bytes, list[Frame]] = defaultdict(list)
        self.events: list[Event] = []
        self.touched: set[bytes] = set()
        self.parser = Parser({sid: self.frames[sid].append for sid in (b"1", b"2", b"37")})

    def feed(self, *chunks: bytes) -> Reading:
        for chunk in chunks:
            touched, events = self.parser.feed(chunk)
            self.touched.update(touched)
            self.events += events
        return self

    def check(self, wanted: list[Piece]) -> None:
        frames: dict[bytes, list[Frame]] = defaultdict(list)
        for piece in wanted:
            if piece.frame is not None:
                frames[piece.frame[0]].append(piece.frame[1])
        strays = len(frames.pop(b"38", []))
        assert {sid: each for sid, each in self.frames.items() if each} == frames
        assert self.touched - {b"38"} == set(frames)
        assert self.parser.strays == strays
        assert self.events == [piece.event for piece in wanted if piece.event is not None]


@given(st.lists(pieces(), max_size=8), st.data())
def test_any_split_gives_the_same(wanted: list[Piece], data: st.DataObject) -> None:
    stream = b"".join(piece.data for piece in wanted)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    edges = [0, *cuts, len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    Reading().feed(*chunks).check(wanted)


@given(st.lists(pieces(), max_size=8))
def test_piece_by_piece_gives_the_same(wanted: list[Piece]) -> None:
    Reading().feed(*(piece.data for piece in wanted)).check(wanted)


@given(st.lists(pieces(), max_size=4))
def test_byte_by_byte_gives_the_same(wanted: list[Piece]) -> None:
    stream = b"".join(piece.data for piece in wanted)
    Reading().feed(*(stream[n : n + 1] for n in range(len(stream)))).check(wanted)


@given(st.lists(pieces(), max_size=3), st.binary(max_size=60), st.data())
def test_garbage_is_a_protocol_error_or_nothing(
    before: list[Piece], garbage: bytes, data: st.DataObject
) -> None:
    stream = b"".join(piece.data for piece in before)
    at = data.draw(st.integers(0, len(stream)))
    spoiled = stream[:at] + garbage + stream[at:] + b"\r\n"
    cut = data.draw(st.integers(0, len(spoiled)))
    # Any other exception fails the test.
    with suppress(ProtocolError):
        Reading().feed(spoiled[:cut], spoiled[cut:])


@pytest.mark.parametrize(
    "line",
    [
        b"\r\n",
        b"HELLO\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"MSG\r\n",
        b"MSG a 1\r\n",
        b"MSG a 1 b c 3\r\nabc\r\n",
        b"MSG a 1 x\r\n",
        b"MSG a 1 -1\r\n",
        b"MSG a 1 -2\r\nPING\r\n",
        b"MSG a 1 -99\r\nPING\r\n",
        b"MSG a 1 3\r\nabcde\r\n",
        b"MSG a 1 3\r\nabc\rX",
        b"MSG a 1 3\r\nabcX\n",
        b"HMSG a 1 5\r\nabcde\r\n",
        b"HMSG a 1 9 5\r\nabcde\r\n",
        b"HMSG a 1 -1 5\r\nabcde\r\n",
        b"HMSG a 1 x 5\r\nabcde\r\n",
        b"INFO\r\n",
        b"INFO []\r\n",
        b"INFO {\r\n",
        b"INFO \xff\r\n",
        b"PI\r\n",
        b"\x16\x03\x01\x00\n",
    ],
)
def test_what_no_server_sends_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        Reading().feed(line + b"PING\r\n")
    with pytest.raises(ProtocolError):
        Reading().feed(*(bytes([each]) for each in line + b"PING\r\n"))


@pytest.mark.parametrize("line", [b"MSG a 1 3\nabc\r\n", b"ping\r\n", b"Ping\r\n", b"PING\n"])
def test_what_old_servers_and_proxies_send_is_read(line: bytes) -> None:
    reading = Reading().feed(line)
    assert reading.events == [Ping()] or reading.frames[b"1"]


def test_a_line_without_end_is_refused_before_memory_runs_out() -> None:
    chunks = [b"x" * 65536] * 17
    with pytest.raises(ProtocolError, match="longer than 1048576 bytes"):
        Reading().feed(*chunks)


def test_an_info_of_a_big_cluster_is_read() -> None:
    urls = [f"10.0.{n // 256}.{n % 256}:4222" for n in range(5000)]
    line = b"INFO " + json.dumps({"connect_urls": urls}).encode() + b"\r\n"
    assert len(line) > 65536
    reading = Reading().feed(*(line[n : n + 4096] for n in range(0, len(line), 4096)))
    assert reading.events == [Info({"connect_urls": urls})]


def test_a_big_payload_is_joined_once() -> None:
    """A payload in many pieces is processed when its head has arrived, and when it is complete."""
    looks: list[bytes] = []
    payload = bytes(range(256)) * 16384
    stream = msg(b"big", b"1", payload)
    with hooked("parser: before parse", looks.append):
        reading = Reading().feed(*(stream[n : n + 1000] for n in range(0, len(stream), 1000)))
    assert reading.frames[b"1"] == [(b"big", b"", 0, payload + b"\r\n")]
    assert sum(map(len, looks)) <= len(stream) + 1000


def test_line_that_arrives_in_small_pieces_is_not_scanned_repeatedly() -> None:
    looks: list[bytes] = []
    line = b'INFO {"name":"' + b"x" * 100_000 + b'"}\r\n'
    with hooked("parser: before parse", looks.append):
        reading = Reading().feed(*(line[n : n + 10] for n in range(0, len(line), 10)))
    assert reading.events == [Info({"name": "x" * 100_000})]
    assert sum(map(len, looks)) <= len(line) + 10


def test_a_line_without_an_end_is_given_up_in_the_end() -> None:
    reading = Reading()
    with pytest.raises(ProtocolError, match="longer than 1048576 bytes"):
        reading.feed(*[b"x" * 10_000] * 106)


@pytest.mark.parametrize("size", [1 << 27, 10**18, 10**30, "9" * 5000])
def test_a_message_longer_than_any_server_sends_is_not_waited_for(size: object) -> None:
    with pytest.raises(ProtocolError):
        Reading().feed(b"MSG a 1 %b\r\n" % str(size).encode(), b"x" * 100)


def test_messages_as_long_as_the_server_announces_are_waited_for() -> None:
    reading = Reading()
    reading.parser.expect_payloads(1 << 27)
    reading.feed(b"MSG a 1 %d\r\n" % (1 << 27))
    with pytest.raises(ProtocolError, match="268435477 bytes"):
        Reading().feed(b"MSG a 1 %d\r\n" % (1 << 28))
    reading.parser.expect_payloads(1 << 60)
    assert reading.parser.max_message < 1 << 32


@pytest.mark.parametrize("alone", [True, False])
def test_raising_sink_delays_no_other_message(alone: bool) -> None:
    failed: list[tuple[bytes, str]] = []
    frames: list[Frame] = []

    def broken(frame: Frame) -> None:
        raise RuntimeError("broken")

    sinks = {b"1": broken, b"2": frames.append}
    parser = Parser(sinks, on_failure=lambda *about: failed.append((about[0], str(about[1]))))
    bad, good = msg(b"a", b"1", b"one"), msg(b"b", b"2", b"two")
    if alone:
        parser.feed(bad)
        parser.feed(good)
    else:
        parser.feed(bad + good)
    assert failed == [(b"a", "broken")]
    assert frames == [(b"b", b"", 0, b"two\r\n")]


def test_info_that_nests_too_deeply_is_refused() -> None:
    with pytest.raises(ProtocolError, match="nested too deeply"):
        Reading().feed(b'INFO {"a":' + b"[" * 100_000 + b"\r\n")


def test_parser_reports_the_length_of_an_incomplete_message() -> None:
    parser = Parser({})
    whole, told = msg(b"a", b"1", bytes(2000)), []
    for piece in (whole, whole[:5], whole[5:100], whole[100:-1], whole[-1:]):
        parser.feed(piece)
        told.append(parser.needed)
    assert told == [0, 0, len(whole), len(whole), 0]


def test_sinks_may_change_between_pieces() -> None:
    frames: list[Frame] = []
    sinks = {b"1": frames.append}
    parser = Parser(sinks)
    assert parser.feed(msg(b"a", b"1", b"one") + b"MSG a 1 ")[0] == [b"1"]
    del sinks[b"1"]
    assert parser.feed(b"3\r\ntwo\r\n") == ([b"1"], [])
    assert [frame[3] for frame in frames] == [b"one\r\n"]
    assert parser.strays == 1


def test_commands_on_the_wire() -> None:
    assert protocol.connect_command({"a": "ü", "b": False}) == (
        b'CONNECT {"a":"\\u00fc","b":false}\r\n'
    )
    publish = protocol.publish_command
    assert publish(b"s", b"", b"", b"") == b"PUB s 0\r\n\r\n"
    assert publish(b"s", b"r", b"", b"abc") == b"PUB s r 3\r\nabc\r\n"
    head = b"NATS/1.0\r\nA: b\r\n\r\n"
    assert publish(b"s", b"r", head, b"abc") == b"HPUB s r 18 21\r\n" + head + b"abc\r\n"
    assert publish(b"s", b"", head, b"") == b"HPUB s 18 18\r\n" + head + b"\r\n"
    assert protocol.subscribe_command(b"s.*", b"", b"7") == b"SUB s.* 7\r\n"
    assert protocol.subscribe_command(b"s.*", b"q", b"7") == b"SUB s.* q 7\r\n"
    assert protocol.unsubscribe_command(b"7") == b"UNSUB 7\r\n"


@given(SUBJECTS, st.just(b"") | SUBJECTS, PAYLOADS, st.just(b"") | BLOCKS)
def test_what_is_written_is_read_back(
    subject: bytes, reply: bytes, payload: bytes, head: bytes
) -> None:
    """A server sends a message as it was published, with the sid of the subscription added."""
    written = protocol.publish_command(subject, reply, head, payload)
    word, rest = written.split(b" ", 1)
    sent = word.replace(b"PUB", b"MSG") + b" " + rest.replace(subject, subject + b" 1", 1)
    frame = (subject, reply, len(head), head + payload + b"\r\n")
    assert Reading().feed(sent).frames[b"1"] == [frame]


@pytest.mark.parametrize("reply", [b"", b"r"])
@pytest.mark.parametrize("head", [b"", b"NATS/1.0\r\nA: b\r\n\r\n"])
def test_long_payloads_are_written_as_short_ones(reply: bytes, head: bytes) -> None:
    def written(payload: bytes) -> bytes:
        return protocol.publish_command(b"s", reply, head, payload)

    long = b"x" * (1 << 17)
    line, _, rest = written(b"x").partition(b"\r\n")
    # The last number is the size of everything.
    expected = line.rpartition(b" ")[0] + b" %d\r\n" % (len(head) + len(long))
    assert written(long) == expected + rest.replace(b"x", long)
    pieces = protocol.long_publish_command(b"s", reply, head, long)
    assert b"".join(pieces) == written(long)
    assert pieces[1] is long
