"""Any text from a server or publisher is handled without an exception of Python itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from twinstream.core.client.handshake import ServerInfo
from twinstream.core.consume.advisories import read_event
from twinstream.core.consume.pin import pin_of
from twinstream.core.coordination.lease_record import read_slot
from twinstream.core.counters.counters import counter_of
from twinstream.core.publish.atomic_batch import BATCH_COMMIT, BATCH_ID, BATCH_SEQUENCE, commit_seq
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.direct_get import from_direct
from twinstream.core.read.multi_last import MultiAnswer
from twinstream.core.read.page import StoredPage
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.fast import AckReader
from twinstream.core.wire.headers import parse_status
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.response import read_answer
from twinstream.core.wire.status import is_status, read_status
from twinstream.core.workers.dead_letter import read_letter
from twinstream.errors import BadArgument, InvalidResponse, ProtocolError
from twinstream.models import Timestamp
from twinstream.records.header_names import TTL
from twinstream.records.headers import Headers

LONG = "9" * 5000
DEEP = b"[" * 100_000


def direct(time: str, seq: str = "1", stream: str = "S") -> Frame:
    """Return the response to a direct get."""
    block = (
        f"NATS/1.0\r\nNats-Stream: {stream}\r\nNats-Subject: a\r\nNats-Sequence: {seq}\r\n"
        f"Nats-Time-Stamp: {time}\r\n\r\n"
    ).encode("utf-8", "surrogateescape")
    return (b"r", b"", len(block), block + b"data\r\n")


def status(line: str, *headers: str) -> Frame:
    block = ("NATS/1.0 " + "\r\n".join([line, *headers]) + "\r\n\r\n").encode()
    return (b"inbox.1", b"", len(block), block + b"\r\n")


def stored(data: bytes = b"", **headers: str) -> StreamMessage:
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    moment = Timestamp.from_ns(0)
    return StreamMessage(
        stream_name="S", subject="a", seq=1, time=moment, data=data, headers=Headers(pairs)
    )


def page(time: bytes) -> StoredPage:
    return StoredPage([1], [b"a"], [time], [b""], [b""])


def letter(headers: str) -> StreamMessage:
    """Return a dead letter of a message with these headers."""
    words = {"Stream": "S", "Consumer": "c", "Cause": "x", "Reason": "y", "Headers": headers}
    numbers = {"Sequence": "1", "Deliveries": "1", "Failed-At": "2024-01-01T00:00:00Z"}
    return stored(**{f"Dead-{name}": value for name, value in (words | numbers).items()})


TIMES = ("", "yesterday", "2024-13-01T00:00:00Z", "\udcff", LONG)


@pytest.mark.parametrize("time", TIMES, ids=ascii)
def test_a_bad_time_of_a_stored_message_is_a_bad_answer(time: str) -> None:
    with pytest.raises(InvalidResponse, match="invalid time"):
        from_direct(direct(time), "$JS.API.DIRECT.GET.S")
    raw = time.encode("utf-8", "surrogateescape")
    with pytest.raises(InvalidResponse, match="invalid time"):
        page(raw).message(0, "S")
    with pytest.raises(InvalidResponse, match="invalid time"):
        ArrowPage.of(page(raw))


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"seq": "x", "subject": "a", "time": ""},
        {"seq": None, "subject": "a", "time": ""},
        {"seq": float("inf"), "subject": "a", "time": ""},
        {"seq": 1, "subject": "a", "time": "", "data": "%"},
        {"seq": 1, "subject": "a", "time": "", "data": 5},
        {"seq": 1, "subject": "a", "time": "", "hdrs": "A"},
        {"seq": 1, "subject": "a", "time": "\udcff"},
    ],
    ids=ascii,
)
def test_a_bad_message_of_the_leader_is_a_bad_answer(members: dict[str, object]) -> None:
    kept = page(b"")
    with pytest.raises(InvalidResponse, match="not a stored message"):
        kept.add_stored(members)
    assert {len(each) for each in (kept.seqs, kept.subjects, kept.times, kept.payloads)} == {1}


BAD_ANSWERS: dict[str, Callable[[], object]] = {
    "a sequence beyond 64 bits": lambda: from_direct(direct("2024-01-01T00:00:00Z", LONG), "s"),
    "the end of a read of many subjects": lambda: MultiAnswer(b"inbox.1", b"S", page(b"")).take(
        [status("204 EOB", f"Nats-UpTo-Sequence: {LONG}")]
    ),
    "an answer without end": lambda: read_answer(DEEP, "s"),
    "a number without end": lambda: read_answer(b'{"seq":%b}' % LONG.encode(), "s"),
    "a counter without end": lambda: counter_of(stored(DEEP)),
    "the sources of a counter": lambda: counter_of(
        stored(b'{"val":"1"}', Nats_Counter_Sources="\udcff")
    ),
    "an acknowledgement": lambda: AckReader().read((b"r", b"", 0, DEEP + b"\r\n"), "s"),
}


@pytest.mark.parametrize("read", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_what_cannot_be_read_is_a_bad_answer(read: Callable[[], object]) -> None:
    with pytest.raises(InvalidResponse):
        read()


def test_a_line_that_looks_like_a_status_is_none() -> None:
    """Any publisher may begin its headers with such a line."""
    frame = status(LONG)
    assert parse_status(frame[3]) == (0, "")
    assert not is_status(frame)


def test_a_count_that_is_no_number_is_not_known() -> None:
    said = read_status(status("408 Request Timeout", f"Nats-Pending-Messages: {LONG}"))
    assert said.pending_messages is None


def test_entries_of_other_clients_are_read_as_far_as_possible() -> None:
    assert read_slot(stored(DEEP)).owner == ""
    assert read_slot(stored(b"{}", **{TTL: LONG})).ttl is None
    batch = Headers([(BATCH_ID, "b"), (BATCH_COMMIT, "1"), (BATCH_SEQUENCE, LONG)])
    assert commit_seq(batch, "b") == 0
    event = read_event((b"$JS.EVENT.\xff", b"", 0, b"x\r\n"))
    assert event.subject == "$JS.EVENT.\udcff"
    block = b"NATS/1.0\r\nNats-Pin-Id: \xff\r\n\r\n"
    assert pin_of((b"a", b"", len(block), block + b"\r\n")) == "\ufffd"


@pytest.mark.parametrize("text", ["5", "[5]", '["a"]', DEEP.decode()], ids=lambda text: text[:9])
def test_a_dead_letter_with_bad_headers_is_none(text: str) -> None:
    assert read_letter(letter('[["A", "b"]]')).headers == Headers([("A", "b")])
    with pytest.raises(BadArgument, match="is not a dead letter"):
        read_letter(letter(text))


def test_an_acknowledgement_like_the_last_one_has_a_sequence_of_64_bits() -> None:
    reader = AckReader()
    reader.read((b"r", b"", 0, b'{"stream":"S","seq":1}\r\n'), "s")
    assert reader.read((b"r", b"", 0, b'{"stream":"S","seq":2}\r\n'), "s").seq == 2
    with pytest.raises(InvalidResponse):
        reader.read((b"r", b"", 0, b'{"stream":"S","seq":%b}\r\n' % LONG.encode()), "s")


@pytest.mark.parametrize("members", [{"max_payload": float("inf")}, {"connect_urls": 5}], ids=str)
def test_a_bad_greeting_is_not_the_protocol(members: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        ServerInfo.read(members)


def test_a_version_without_end_is_none() -> None:
    assert ServerInfo.read({"version": f"{LONG}.1.1"}).version_numbers == (0, 0, 0)
