"""Timeouts of calls while the server sends data without a pause."""

from __future__ import annotations

from contextlib import suppress

import pytest

import js_async as js
from tests._async.flow import eventually
from tests._async.scripted import scripted
from tests.fake.answers import CONSUMER
from twinstream.core.deadline import Deadline, monotonic
from twinstream.models import ConsumerConfig
from twinstream.testing import FakePeer, ScriptError


class Flood:
    """Data that is sent until the client leaves.

    `is_over` is true if the client stayed for a minute: then a call has waited for the end of the
    flood instead of its own timeout.
    """

    def __init__(self):
        self.is_over = False

    def send(self, peer: FakePeer, block: bytes) -> None:
        """Send `block` again and again."""
        peer.stop_reading()
        end = Deadline.after(60)
        with suppress(ScriptError):
            while not end.expired():
                peer.send(block)
            self.is_over = True


@pytest.fixture(autouse=True)
def short_goodbye(tuned):
    """Wait only a moment at the end for the last response, which stands behind the flood."""
    tuned("session goodbye", 0.1)


def statuses(peer: FakePeer, to: str, count: int = 500) -> bytes:
    head = b"NATS/1.0 100 Idle Heartbeat\r\n\r\n"
    line = f"HMSG {to} {peer.sid(to)} {len(head)} {len(head)}\r\n".encode()
    return (line + head + b"\r\n") * count


async def lateness(call, timeout):
    """Return how long after `timeout` seconds the call has raised `RequestTimeout`."""
    began = monotonic()
    with pytest.raises(js.RequestTimeout):
        await call()
    return monotonic() - began - timeout


async def test_a_flood_of_pings_does_not_delay_a_timeout():
    flood = Flood()

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^PUB question")
        flood.send(peer, b"PING\r\n" * 10_000)

    async with scripted(script) as connection:

        async def in_time():
            late = await lateness(lambda: connection.request("question", timeout=0.2), 0.2)
            return late < 0.6

        # One of several, because other processes delay some of the calls.
        await eventually(in_time)
        assert not flood.is_over


async def test_other_responders_do_not_delay_the_timeout_of_a_publish():
    flood = Flood()

    def script(peer: FakePeer) -> None:
        peer.handshake()
        request = peer.expect("^PUB s ")
        to = request.reply
        flood.send(peer, f"MSG {to} {peer.sid(to)} 2\r\nno\r\n".encode() * 2000)

    async with scripted(script) as connection:
        with pytest.raises(js.TwinstreamError):
            await connection.jetstream().publish("s", timeout=0.3)
        assert not flood.is_over


async def test_statuses_do_not_delay_the_timeout_of_an_iteration():
    flood = Flood()

    def script(peer: FakePeer) -> None:
        peer.handshake()
        flood.send(peer, statuses(peer, peer.expect_pull().reply))

    async with scripted(script) as connection:
        consumer = connection.jetstream().bind_consumer("S", "c")
        async with consumer.messages() as messages:
            assert await messages.next(timeout=0.3) is None
            assert not flood.is_over


async def test_statuses_do_not_delay_the_timeout_of_pushed_messages():
    flood = Flood()

    def script(peer: FakePeer) -> None:
        peer.handshake()
        created = peer.expect("CONSUMER.CREATE")
        peer.answer(created, CONSUMER)
        flood.send(peer, statuses(peer, "deliveries"))

    config = ConsumerConfig(durable_name="c", deliver_subject="deliveries")
    async with scripted(script) as connection:
        stream = connection.jetstream().bind_stream("S")
        async with stream.push_messages(config) as messages:
            assert await messages.next(timeout=0.3) is None
            assert not flood.is_over
