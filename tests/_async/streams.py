"""Streams and conditions that several scenarios start from."""

from __future__ import annotations

import js_async as js
from twinstream.models import StreamConfig

__all__ = ["filled", "settled", "waiting"]


async def filled(jet, name, count):
    """Return a stream with `count` messages on subjects of their own."""
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    requests = (js.PublishRequest(subject=f"{name}.{n}", data=b"%d" % n) for n in range(count))
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


async def settled(consumer, seq):
    """Tell whether everything delivered is acknowledged, up to a sequence."""
    info = await consumer.info()
    return info.num_ack_pending == 0 and info.ack_floor.stream_seq == seq


async def waiting(consumer, count=1):
    """Tell whether so many pulls wait at the consumer."""
    return (await consumer.info()).num_waiting == count
