"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.generated.api.stream import StreamState
from twinstream.models.generated.common import ClientInfo, PeerInfo
from twinstream.models.times.timestamp import Timestamp


class StreamActionKind(OpenEnum):
    """What happened to a stream."""

    CREATE = "create"
    """It was made."""

    MODIFY = "modify"
    """Its settings changed."""

    DELETE = "delete"
    """It was removed."""


StreamActionKindWord: TypeAlias = Literal[
    "create",
    "modify",
    "delete",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `StreamActionKind(value)`.
"""


def stream_action_kind(
    value: StreamActionKind | StreamActionKindWord | None,
) -> StreamActionKind | None:
    """Return the member for a value, or None for None."""
    return None if value is None else StreamActionKind(value)


class BatchAbandonReason(OpenEnum):
    """Why a batch was given up."""

    TIMEOUT = "timeout"
    """Nothing came for too long."""

    LARGE = "large"
    """It had too many messages."""

    INCOMPLETE = "incomplete"
    """A message was missing."""

    UNSUPPORTED = "unsupported"
    """It used something that a batch may not."""


BatchAbandonReasonWord: TypeAlias = Literal[
    "timeout",
    "large",
    "incomplete",
    "unsupported",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `BatchAbandonReason(value)`.
"""


def batch_abandon_reason(
    value: BatchAbandonReason | BatchAbandonReasonWord | None,
) -> BatchAbandonReason | None:
    """Return the member for a value, or None for None."""
    return None if value is None else BatchAbandonReason(value)


@frozen(kw_only=True, repr=False)
class StreamAction(Model):
    """A stream was made, changed or removed."""

    type: str | None = "io.nats.jetstream.advisory.v1.stream_action"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    action: StreamActionKind
    """What happened to it."""

    template: str | None = None
    """Template that made it, on old servers."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class StreamLeaderElected(Model):
    """A stream has a new leader."""

    type: str | None = "io.nats.jetstream.advisory.v1.stream_leader_elected"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    account: str | None = None
    """Account of the asset."""

    leader: str | None = None
    """Server that leads now."""

    replicas: list[PeerInfo] | None = None
    """The followers."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class StreamQuorumLost(Model):
    """A stream lost the majority of its servers."""

    type: str | None = "io.nats.jetstream.advisory.v1.stream_quorum_lost"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    account: str | None = None
    """Account of the asset."""

    replicas: list[PeerInfo] | None = None
    """The servers of the group as far as known."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class SnapshotComplete(Model):
    """A snapshot of a stream ended."""

    type: str | None = "io.nats.jetstream.advisory.v1.snapshot_complete"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    start: Timestamp = field(converter=converters.timestamp)
    """When it began."""

    end: Timestamp = field(converter=converters.timestamp)
    """When it ended."""

    client: ClientInfo | None = None
    """Connection that asked for it."""

    error: str | None = None
    """Why it failed."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class RestoreCreate(Model):
    """The restore of a stream began."""

    type: str | None = "io.nats.jetstream.advisory.v1.restore_create"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    client: ClientInfo | None = None
    """Connection that asked for it."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class RestoreComplete(Model):
    """The restore of a stream ended."""

    type: str | None = "io.nats.jetstream.advisory.v1.restore_complete"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    start: Timestamp = field(converter=converters.timestamp)
    """When it began."""

    end: Timestamp = field(converter=converters.timestamp)
    """When it ended."""

    bytes: int | None = None
    """Size that was received, in bytes."""

    client: ClientInfo | None = None
    """Connection that asked for it."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class StreamBatchAbandoned(Model):
    """A batch of messages was given up."""

    type: str | None = "io.nats.jetstream.advisory.v1.stream_batch_abandoned"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    batch: str
    """Identity of the batch."""

    reason: BatchAbandonReason
    """Why it was given up."""

    account: str | None = None
    """Account of the asset."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class SnapshotCreate(Model):
    """A snapshot of a stream began."""

    type: str | None = "io.nats.jetstream.advisory.v1.snapshot_create"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    stream: str
    """Name of the stream."""

    state: StreamState | None = None
    """What the stream held."""

    client: ClientInfo | None = None
    """Connection that asked for it."""

    domain: str | None = None
    """JetStream domain of the server."""
