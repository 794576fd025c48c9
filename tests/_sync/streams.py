# Generated from tests/_async/streams.py by codegen/twin.py. Edit that file instead.
"""Streams and conditions that several scenarios start from."""

from __future__ import annotations

import js_sync as js
from twinstream.models import StreamConfig

__all__ = ["filled", "settled", "waiting"]


def filled(jet, name, count):
    """Return a stream with `count` messages on subjects of their own."""
    stream = jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    requests = (js.PublishRequest(subject=f"{name}.{n}", data=b"%d" % n) for n in range(count))
    for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


def settled(consumer, seq):
    """Tell whether everything delivered is acknowledged, up to a sequence."""
    info = consumer.info()
    return info.num_ack_pending == 0 and info.ack_floor.stream_seq == seq


def waiting(consumer, count=1):
    """Tell whether so many pulls wait at the consumer."""
    return (consumer.info()).num_waiting == count
