"""Messages for unit tests of handlers, in both twins."""

from __future__ import annotations

import asyncio

import attrs
import pytest

import js_async
import js_sync
from js_async.groups import GroupMessage as AsyncGroupMessage
from js_sync.groups import GroupMessage
from twinstream.codecs import TextCodec
from twinstream.errors import AlreadyAcknowledged, BadArgument, NotAcknowledgeable, PayloadError
from twinstream.models import Timestamp
from twinstream.testing import (
    acknowledgements,
    async_group_message,
    async_message,
    stream_message,
    sync_group_message,
    sync_message,
)


@attrs.frozen
class Order:
    number: int


def test_a_message_of_the_blocking_twin() -> None:
    message = sync_message(
        Order(7), subject="orders.1", headers={"A": "b"}, stream_name="S", seq=9, num_delivered=2
    )
    assert isinstance(message, js_sync.Message)
    assert (message.payload, message.data) == (Order(7), b'{"number":7}')
    assert dict(message.headers) == {"A": "b", "Content-Type": "application/json"}
    assert (message.subject, message.seq, message.num_delivered) == ("orders.1", 9, 2)
    assert (message.metadata.stream, message.is_late) == ("S", False)
    message.in_progress()
    message.nak(1.5)
    assert acknowledgements(message) == ["+WPI", '-NAK {"delay": 1500000000}']
    with pytest.raises(AlreadyAcknowledged):
        message.ack()


def test_a_message_of_the_asyncio_twin() -> None:
    async def handle(message: js_async.Message[Order]) -> None:
        assert message.payload == Order(7)
        await message.double_ack()

    message = async_message(Order(7))
    asyncio.run(handle(message))
    assert acknowledgements(message) == ["+ACK"]
    assert message.is_acknowledged


@pytest.mark.parametrize("make", [sync_message, async_message])
def test_bytes_with_a_type_are_a_payload_that_need_not_fit(make: object) -> None:
    message = make(b'{"number": "x"}', Order)  # type: ignore[operator]
    assert isinstance(message.payload_error, PayloadError)
    assert make("grün", TextCodec()).data == "grün".encode()  # type: ignore[operator]
    assert make(b"raw").payload == b"raw"  # type: ignore[operator]
    with pytest.raises(BadArgument):
        make(object())  # type: ignore[operator]


def test_a_message_of_a_group_in_the_blocking_twin() -> None:
    message = sync_group_message(Order(7), partition=3, subject="orders.1", seq=9)
    assert isinstance(message, GroupMessage)
    assert (message.partition, message.subject, message.seq) == (3, "orders.1", 9)
    assert message.payload == Order(7)
    message.term("no")
    assert acknowledgements(message) == ["+TERM no"]
    wrong = sync_group_message(b"{}", Order)
    assert (wrong.partition, wrong.subject) == (0, "test")
    assert isinstance(wrong.payload_error, PayloadError)


def test_a_message_of_a_group_in_the_asyncio_twin() -> None:
    async def handle(message: AsyncGroupMessage[Order]) -> None:
        assert (message.partition, message.payload) == (2, Order(7))
        await message.ack()

    message = async_group_message(Order(7), partition=2)
    asyncio.run(handle(message))
    assert acknowledgements(message) == ["+ACK"]


def test_a_message_that_was_read_from_a_stream() -> None:
    at = Timestamp.parse("2026-01-02T03:04:05.000000006Z")
    message = stream_message(Order(7), subject="orders.1", headers={"A": "b"}, seq=9, time=at)
    assert isinstance(message, js_sync.StreamMessage)
    assert (message.payload, message.data) == (Order(7), b'{"number":7}')
    assert dict(message.headers) == {"A": "b", "Content-Type": "application/json"}
    assert (message.subject, message.seq, message.time) == ("orders.1", 9, at)
    assert stream_message(b"raw").payload == b"raw"
    with pytest.raises(PayloadError, match=r"stream TEST, seq 1, subject test: .*Order"):
        _ = stream_message(b"{}", Order).payload


@pytest.mark.parametrize(
    "make", [sync_message, async_message, sync_group_message, async_group_message]
)
def test_rare_deliveries(make: object) -> None:
    at = Timestamp.parse("2026-01-02T03:04:05.000000006Z")
    given = {"time": at, "num_pending": 8, "domain": "hub", "time_left": -2.0}
    late = make(Order(7), **given)  # type: ignore[operator]
    assert (late.time, late.metadata.num_pending, late.metadata.domain) == (at, 8, "hub")
    assert late.is_late
    assert late.time_left <= -2
    early = make(Order(7), time_left=29)  # type: ignore[operator]
    assert not early.is_late
    imported = make(Order(7), reply="_R_.x")  # type: ignore[operator]
    with pytest.raises(NotAcknowledgeable):
        _ = imported.metadata
    assert imported.payload == Order(7)
    marker = make(b"", headers={"Nats-Marker-Reason": "MaxAge"})  # type: ignore[operator]
    assert (marker.data, marker.headers["Nats-Marker-Reason"]) == (b"", "MaxAge")
    with pytest.raises(TypeError, match="a message has no delivered"):
        make(Order(7), delivered=3)  # type: ignore[operator]


def test_a_message_without_a_reply_cannot_be_acknowledged() -> None:
    with pytest.raises(NotAcknowledgeable):
        sync_message(Order(7), reply="").ack()
