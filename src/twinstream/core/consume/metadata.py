"""Reading the reply subject of a delivered message, which carries its metadata.

Two layouts exist (server 2.2, and `js_ack_fc_v2` since 2.14)::

    $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns>.<pending>
    $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>
        .<ns>.<pending>[.…]

A reply is only ever read, never rebuilt: acknowledgements go to it as received.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import frozen

from twinstream.core.base.nats_py_names import hint_attributes

__all__ = ["Metadata", "parse_ack_reply"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST: Final = 2**64 - 1
_LEAST: Final = -_MOST


@hint_attributes
@frozen
class Metadata:
    """Where a message stands in its stream and consumer, as the server said on delivery."""

    stream: str
    consumer: str
    num_delivered: int
    """Deliveries of this message so far, this one included."""
    stream_seq: int
    consumer_seq: int
    timestamp_ns: int
    """When the stream stored it, in nanoseconds since 1970."""
    num_pending: int
    """Messages that match the consumer and were not delivered yet."""
    domain: str = ""

    @property
    def timestamp(self) -> datetime:
        """When the stream stored it, cut to microseconds."""
        return _EPOCH + timedelta(microseconds=self.timestamp_ns // 1000)


def parse_ack_reply(reply: bytes) -> Metadata | None:
    """Return the metadata, or None when the reply is not one of JetStream's."""
    parts = reply.decode("utf-8", "replace").split(".")
    if len(parts) == 9:
        domain, names, numbers = "", parts[2:4], parts[4:9]
    elif len(parts) >= 11:
        domain, names, numbers = parts[2], parts[4:6], parts[6:11]
    else:
        return None
    if parts[:2] != ["$JS", "ACK"]:
        return None
    try:
        delivered, stream_seq, consumer_seq, timestamp, pending = map(int, numbers)
    except ValueError:
        return None
    if stream_seq > _MOST or not _LEAST <= timestamp <= _MOST:
        # Another client may send whatever it likes to the inbox of a pull.
        return None
    return Metadata(
        names[0],
        names[1],
        delivered,
        stream_seq,
        consumer_seq,
        timestamp,
        pending,
        "" if domain == "_" else domain,
    )
