"""Streams and conditions for several scenarios."""

from __future__ import annotations

import js_async as js
from tests._async.flow import pause
from twinstream.models import StreamConfig

__all__ = [
    "disconnected",
    "filled",
    "has_consumers",
    "is_still",
    "run_out",
    "settled",
    "waiting",
]


async def filled(jet, name, count):
    """Return a stream with `count` messages, each on its own subject."""
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    requests = (js.PublishRequest(subject=f"{name}.{n}", data=b"%d" % n) for n in range(count))
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


async def disconnected(events):
    """Return whether a connection has reported its loss to the list of its events.

    `is_connected` becomes False earlier, because it checks the socket. A message that is sent
    between the two moments may be written to the broken connection.
    """
    return any(isinstance(event, js.Disconnected) for event in events)


async def settled(consumer, seq):
    """Return whether all messages up to a sequence, and no others, were acknowledged."""
    info = await consumer.info()
    return info.num_ack_pending == 0 and info.ack_floor.stream_seq == seq


async def is_still(consumer):
    """Return whether everything that the server has delivered has arrived, most likely.

    If a subscription ends earlier, the server drops what is still in its own queues. This is
    redelivered after ack_wait only.
    """
    before = (await consumer.info()).delivered.consumer_seq
    await pause(0.2)
    return before and (await consumer.info()).delivered.consumer_seq == before


async def run_out(consumer):
    """Return whether no message waits any longer, neither for its end nor for a last delivery.

    The server notices that a message has no deliveries left when it would deliver it.
    """
    await consumer.fetch(1, timeout=0.2)
    return (await consumer.info()).num_ack_pending == 0


async def waiting(consumer, count=1):
    """Return whether `count` pull requests are waiting at the consumer."""
    return (await consumer.info()).num_waiting == count


async def has_consumers(stream, count):
    """Return whether a stream has so many consumers: a read that ends deletes its own unawaited."""
    return (await stream.info()).state.consumer_count == count
