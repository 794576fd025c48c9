"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class ConsumerAck(Model):
    """A sampled acknowledgement."""

    type: str | None = "io.nats.jetstream.metric.v1.consumer_ack"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    consumer_seq: int
    """Sequence of the delivery."""

    stream_seq: int
    """Sequence of the message in the stream."""

    ack_time: Duration = field(converter=converters.duration)
    """Time between delivery and acknowledgement."""

    deliveries: int
    """How often it was delivered."""

    domain: str | None = None
    """JetStream domain of the server."""
