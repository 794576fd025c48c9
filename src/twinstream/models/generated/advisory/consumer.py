"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.generated.common import PeerInfo
from twinstream.models.times.timestamp import Timestamp


class ConsumerActionKind(OpenEnum):
    """What happened to a consumer."""

    CREATE = "create"
    """It was made."""

    MODIFY = "modify"
    """Its settings changed."""

    DELETE = "delete"
    """It was removed."""


ConsumerActionKindWord: TypeAlias = Literal[
    "create",
    "modify",
    "delete",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `ConsumerActionKind(value)`.
"""


def consumer_action_kind(
    value: ConsumerActionKind | ConsumerActionKindWord | None,
) -> ConsumerActionKind | None:
    """Return the member for a value, or None for None."""
    return None if value is None else ConsumerActionKind(value)


class UnpinReason(OpenEnum):
    """Why a priority group lost its pinned client."""

    ADMIN = "admin"
    """A client asked for it."""

    TIMEOUT = "timeout"
    """The client did not pull in time."""


UnpinReasonWord: TypeAlias = Literal[
    "admin",
    "timeout",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `UnpinReason(value)`.
"""


def unpin_reason(
    value: UnpinReason | UnpinReasonWord | None,
) -> UnpinReason | None:
    """Return the member for a value, or None for None."""
    return None if value is None else UnpinReason(value)


@frozen(kw_only=True, repr=False)
class ConsumerAction(Model):
    """A consumer was made or removed."""

    type: str | None = "io.nats.jetstream.advisory.v1.consumer_action"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    action: ConsumerActionKind
    """What happened to it."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ConsumerPause(Model):
    """A consumer was paused or went on."""

    type: str | None = "io.nats.jetstream.advisory.v1.consumer_pause"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    paused: bool
    """Whether it is paused."""

    pause_until: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """End of the pause."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class MaxDeliver(Model):
    """A message reached its delivery limit without acknowledgement."""

    type: str | None = "io.nats.jetstream.advisory.v1.max_deliver"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    stream_seq: int
    """Sequence of the message in the stream."""

    deliveries: int
    """How often it was delivered."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class Nak(Model):
    """A message was acknowledged negatively."""

    type: str | None = "io.nats.jetstream.advisory.v1.nak"
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

    deliveries: int
    """How often it was delivered."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class Terminated(Model):
    """A message will not be delivered again."""

    type: str | None = "io.nats.jetstream.advisory.v1.terminated"
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

    deliveries: int
    """How often it was delivered."""

    reason: str | None = None
    """Why, in the words of the client or of the server. Since server 2.10.4."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ConsumerGroupPinned(Model):
    """A client was pinned to a priority group."""

    type: str | None = "io.nats.jetstream.advisory.v1.consumer_group_pinned"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    group: str
    """Name of the group."""

    pinned_id: str
    """Pin of the client."""

    account: str | None = None
    """Account of the asset."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ConsumerGroupUnpinned(Model):
    """A priority group lost its pinned client."""

    type: str | None = "io.nats.jetstream.advisory.v1.consumer_group_unpinned"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    group: str
    """Name of the group."""

    reason: UnpinReason
    """Why it was lost."""

    account: str | None = None
    """Account of the asset."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ConsumerLeaderElected(Model):
    """A consumer has a new leader."""

    type: str | None = "io.nats.jetstream.advisory.v1.consumer_leader_elected"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    account: str | None = None
    """Account of the asset."""

    leader: str | None = None
    """Server that leads now."""

    replicas: list[PeerInfo] | None = None
    """The followers."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ConsumerQuorumLost(Model):
    """A consumer lost the majority of its servers."""

    type: str | None = "io.nats.jetstream.advisory.v1.consumer_quorum_lost"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    consumer: str
    """Name of the consumer."""

    account: str | None = None
    """Account of the asset."""

    replicas: list[PeerInfo] | None = None
    """The servers of the group as far as known."""

    domain: str | None = None
    """JetStream domain of the server."""
