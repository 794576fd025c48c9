"""Parsing numbers of the protocol."""

from __future__ import annotations

import pytest

from twinstream.core.client.handshake import ServerInfo
from twinstream.core.consume.pin import pin_of
from twinstream.core.coordination.coordination import CoordinationSubjects
from twinstream.core.coordination.lease_record import read_slot
from twinstream.core.publish.atomic_batch import commit_seq
from twinstream.core.publish.fast_ingest import FastBatch
from twinstream.core.read.direct_get import from_direct
from twinstream.core.read.multi_last import MultiAnswer
from twinstream.core.read.page import StoredPage
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.response import read_answer
from twinstream.errors import InvalidResponse
from twinstream.models import Timestamp
from twinstream.models.digits import natural
from twinstream.records.headers import Headers

LONG = "9" * 5000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0),
        ("0012", 12),
        (b"18446744073709551615", 2**64 - 1),
        ("9" * 20, 10**20 - 1),
        ("9" * 21, None),
        (LONG, None),
        ("", None),
        (None, None),
        ("-1", None),
        ("+1", None),
        ("1_0", None),
        (" 1", None),
        ("\u0661", None),
        ("\xb2", None),
        (b"\xb2", None),
    ],
)
def test_digits_are_a_number_and_nothing_else_is(text: str | bytes | None, wanted: object) -> None:
    assert natural(text) == wanted


def stored(headers: dict[str, str], data: bytes = b"") -> StreamMessage:
    return StreamMessage(
        stream_name="S",
        subject="s",
        seq=1,
        time=Timestamp.from_ns(0),
        data=data,
        headers=Headers(headers.items()),
    )


def test_thousands_of_digits_in_a_stored_message_are_no_number() -> None:
    assert (
        commit_seq(
            Headers(
                {
                    "Nats-Batch-Id": "b",
                    "Nats-Batch-Commit": "1",
                    "Nats-Batch-Sequence": LONG,
                }.items()
            ),
            "b",
        )
        == 0
    )
    assert read_slot(stored({"Nats-TTL": LONG})).ttl is None
    assert read_slot(stored({}, b"[" * 100_000)).tenure == ""
    assert read_slot(stored({}, '{"data": "ä"}'.encode())).data == b""
    subjects = CoordinationSubjects("C")
    assert subjects.parts(f"{subjects.root}.held.rate.a.{LONG}") == ("rate", f"a.{LONG}", None)


def test_thousands_of_digits_in_an_answer_are_a_bad_answer() -> None:
    block = (
        f"NATS/1.0\r\nNats-Stream: S\r\nNats-Subject: s\r\nNats-Sequence: {LONG}\r\n"
        "Nats-Time-Stamp: 2024-01-01T00:00:00Z\r\nNats-Num-Pending: 1\r\n\r\n"
    ).encode()
    frame = (b"r", b"", len(block), block + b"\r\n")
    with pytest.raises(InvalidResponse):
        from_direct(frame, "s")
    with pytest.raises(InvalidResponse):
        MultiAnswer(b"r", b"S", StoredPage()).take([frame])
    end = f"NATS/1.0 204\r\nNats-UpTo-Sequence: {LONG}\r\n\r\n".encode()
    with pytest.raises(InvalidResponse):
        MultiAnswer(b"r", b"S", StoredPage()).take([(b"r", b"", len(end), end + b"\r\n")])


@pytest.mark.parametrize("error", [b"5", b'"no"', b"[]", b"true"])
def test_an_error_that_is_no_object_is_no_success(error: bytes) -> None:
    with pytest.raises(InvalidResponse, match="is not an object"):
        read_answer(b'{"stream":"S","seq":1,"error":%b}' % error, "s")
    assert read_answer(b'{"seq":1,"error":null}', "s")["seq"] == 1


@pytest.mark.parametrize("tail", [b"x.0.$FI", b"1", b"", LONG.encode() + b".0.$FI", b"1.x.$FI"])
def test_foreign_messages_in_the_inbox_of_a_fast_batch_are_ignored(tail: bytes) -> None:
    batch = FastBatch(b"inbox", "id", "S", 10, "fail")
    prefix = batch.next_reply().removesuffix(b"1.0.$FI")
    batch.take((prefix + tail, b"", 0, b"odd\r\n"))
    for body in (b'{"type":"ack","seq":5,"msgs":5,"error":5}', b"[" * 100_000):
        batch.take((batch.next_reply(), b"", 0, body + b"\r\n"))
    assert (batch.passed, batch.interval, batch.is_over) == (0, 0, False)
    assert batch.stray


def test_a_version_of_thousands_of_digits_is_none() -> None:
    assert ServerInfo({}, version=f"{LONG}.1.2").version_numbers == (0, 0, 0)


def test_a_pin_that_is_no_text_is_handed_over() -> None:
    block = b"NATS/1.0\r\nNats-Pin-Id: \xff\r\n\r\n"
    assert pin_of((b"s", b"", len(block), block + b"\r\n")) == "\ufffd"
