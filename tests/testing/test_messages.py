"""Messages for unit tests of handlers, in both twins."""

from __future__ import annotations

import asyncio

import attrs
import pytest

import js_async
import js_sync
from twinstream.codecs import TextCodec
from twinstream.errors import AlreadyAcknowledged, BadArgument, PayloadError
from twinstream.testing import acknowledgements, async_message, sync_message


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
