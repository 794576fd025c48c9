"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.generated.common import ApiError, ClusterInfo, Placement
from twinstream.models.generated.config.stream import (
    ExternalStream,
    SourceConsumer,
    StreamConfig,
    SubjectTransform,
)
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class LostStreamData(Model):
    """Messages that a store could not read back."""

    msgs: list[int] | None = None
    """Their sequences."""

    bytes: int | None = None
    """Their size in bytes."""


@frozen(kw_only=True, repr=False)
class StreamSourceInfo(Model):
    """How far a mirror or source has come."""

    name: str
    """Name of the origin."""

    external: ExternalStream | None = None
    """How the origin is reached."""

    lag: int | None = None
    """Messages still to come."""

    active: Duration | None = field(default=None, converter=converters.optional_duration)
    """Time since the origin was last heard, -1 for never."""

    error: ApiError | None = None
    """Why it stands still."""

    filter_subject: str | None = None
    """Only messages on this subject are copied. Since server 2.10.0."""

    subject_transforms: list[SubjectTransform] | None = None
    """Filters, each with a change of subject. Since server 2.10.0."""

    consumer: SourceConsumer | None = None
    """Consumer on the origin that feeds the copy. Since server 2.14.0."""

    seq: int | None = None
    """Last sequence of the origin that was copied."""


@frozen(kw_only=True, repr=False)
class StreamAlternate(Model):
    """A stream or one of its mirrors."""

    name: str
    """Name of the stream."""

    cluster: str
    """Cluster that it lives in."""

    domain: str | None = None
    """JetStream domain that it lives in."""


@frozen(kw_only=True, repr=False)
class StreamInfoRequest(Model):
    """Asks for a stream's settings and state; an empty body asks for no details."""

    deleted_details: bool | None = None
    """Whether to list the sequences of the gaps."""

    subjects_filter: str | None = None
    """Which subjects to count messages for. Since server 2.7.0."""

    offset: int | None = None
    """Where the page of subjects begins. Since server 2.9.0."""


@frozen(kw_only=True, repr=False)
class StreamDeleteResponse(Model):
    """Answer to the removal of a stream."""

    type: str | None = "io.nats.jetstream.api.v1.stream_delete_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it is gone."""


@frozen(kw_only=True, repr=False)
class StreamNamesRequest(Model):
    """Asks for the names of streams."""

    subject: str | None = None
    """Only streams that capture this subject."""

    offset: int | None = None
    """Where the page begins."""


@frozen(kw_only=True, repr=False)
class StreamNamesResponse(Model):
    """Answer with a page of names."""

    type: str | None = "io.nats.jetstream.api.v1.stream_names_response"
    """Name of the type."""

    total: int | None = None
    """Number over all pages."""

    offset: int | None = None
    """Where this page begins."""

    limit: int | None = None
    """Largest number in a page."""

    streams: list[str] | None = field(default=None, converter=converters.optional_strings)
    """The names, null when there are none."""


@frozen(kw_only=True, repr=False)
class StreamListRequest(Model):
    """Asks for streams with settings and state."""

    subject: str | None = None
    """Only streams that capture this subject."""

    offset: int | None = None
    """Where the page begins."""


@frozen(kw_only=True, repr=False)
class StreamPurgeRequest(Model):
    """Asks to remove messages; seq and keep exclude each other."""

    filter: str | None = None
    """Only messages on this subject."""

    seq: int | None = None
    """Only messages before this sequence."""

    keep: int | None = None
    """Number of newest messages that stay."""


@frozen(kw_only=True, repr=False)
class StreamPurgeResponse(Model):
    """Answer to a purge."""

    type: str | None = "io.nats.jetstream.api.v1.stream_purge_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it was done."""

    purged: int | None = None
    """Number of messages removed."""


@frozen(kw_only=True, repr=False)
class StreamLeaderStepdownRequest(Model):
    """Asks a stream's leader to hand over."""

    placement: Placement | None = None
    """Where the next leader should be."""


@frozen(kw_only=True, repr=False)
class StreamLeaderStepdownResponse(Model):
    """Answer to the hand-over of a stream's leader."""

    type: str | None = "io.nats.jetstream.api.v1.stream_leader_stepdown_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it began."""


@frozen(kw_only=True, repr=False)
class StreamRemovePeerRequest(Model):
    """Asks to take a server out of a stream's group."""

    peer: str | None = None
    """Name or identity of the server."""


@frozen(kw_only=True, repr=False)
class StreamRemovePeerResponse(Model):
    """Answer to the removal of a server from a stream's group."""

    type: str | None = "io.nats.jetstream.api.v1.stream_remove_peer_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it began."""


@frozen(kw_only=True, repr=False)
class StreamEvacuatePeerRequest(Model):
    """Asks to move a stream away from a server."""

    peer: str | None = None
    """Name or identity of the server."""


@frozen(kw_only=True, repr=False)
class StreamEvacuatePeerResponse(Model):
    """Answer to the move of a stream away from a server."""

    type: str | None = "io.nats.jetstream.api.v1.stream_evacuate_peer_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it began."""


@frozen(kw_only=True, repr=False)
class StreamSnapshotRequest(Model):
    """Asks for a copy of a stream in chunks."""

    deliver_subject: str
    """Inbox that the chunks come to."""

    no_consumers: bool | None = None
    """Whether consumers are left out."""

    chunk_size: int | None = None
    """Size of a chunk in bytes, 1 KiB to 1 MiB."""

    window_size: int | None = None
    """Bytes in flight without answer, 1 KiB to 32 MiB. Since server 2.12.5."""

    jsck: bool | None = None
    """Whether checksums are verified first."""


@frozen(kw_only=True, repr=False)
class StreamRestoreResponse(Model):
    """Answer that says where to send the chunks."""

    type: str | None = "io.nats.jetstream.api.v1.stream_restore_response"
    """Name of the type."""

    deliver_subject: str | None = None
    """Subject to send the chunks to."""


@frozen(kw_only=True, repr=False)
class StreamState(Model):
    """What a stream holds."""

    messages: int
    """Number of messages."""

    bytes: int
    """Size in bytes."""

    first_seq: int
    """Sequence of the first message."""

    last_seq: int
    """Sequence of the last message ever stored."""

    consumer_count: int
    """Number of consumers."""

    first_ts: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When the first message was stored, the zero time in an empty stream."""

    last_ts: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When the last message was stored, the zero time in a new stream."""

    num_subjects: int | None = None
    """Number of different subjects. Since server 2.7.0."""

    subjects: dict[str, int] | None = None
    """Number of messages by subject, when asked for. Since server 2.7.0."""

    num_deleted: int | None = None
    """Number of gaps between first and last sequence."""

    deleted: list[int] | None = None
    """Sequences of the gaps, when asked for."""

    lost: LostStreamData | None = None
    """Messages that the store could not read back."""


@frozen(kw_only=True, repr=False)
class StreamInfo(Model):
    """A stream's settings and state."""

    config: StreamConfig
    """Settings with all defaults filled in."""

    created: Timestamp = field(converter=converters.timestamp)
    """When the stream was made."""

    state: StreamState
    """What it holds."""

    domain: str | None = None
    """JetStream domain of the server. Since server 2.3.0."""

    cluster: ClusterInfo | None = None
    """The servers that hold it."""

    mirror: StreamSourceInfo | None = None
    """How far its mirror copy has come."""

    sources: list[StreamSourceInfo] | None = None
    """How far each of its sources has come."""

    alternates: list[StreamAlternate] | None = None
    """The stream and its mirrors, nearest first. Since server 2.8.0."""

    ts: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When this answer was made. Since server 2.10.0."""


@frozen(kw_only=True, repr=False)
class StreamCreateRequest(StreamConfig):
    """Asks for a new stream."""

    pedantic: bool | None = None
    """Whether a setting that the server would change is an error. Since server 2.11.0."""


@frozen(kw_only=True, repr=False)
class StreamCreateResponse(StreamInfo):
    """Answer with the new stream."""

    type: str | None = "io.nats.jetstream.api.v1.stream_create_response"
    """Name of the type."""

    did_create: bool | None = None
    """Whether the stream is new."""


@frozen(kw_only=True, repr=False)
class StreamUpdateRequest(StreamConfig):
    """Asks to replace a stream's settings."""

    pedantic: bool | None = None
    """Whether a setting that the server would change is an error. Since server 2.11.0."""


@frozen(kw_only=True, repr=False)
class StreamUpdateResponse(StreamInfo):
    """Answer with the changed stream."""

    type: str | None = "io.nats.jetstream.api.v1.stream_update_response"
    """Name of the type."""


@frozen(kw_only=True, repr=False)
class StreamInfoResponse(StreamInfo):
    """Answer with a stream's settings and state."""

    type: str | None = "io.nats.jetstream.api.v1.stream_info_response"
    """Name of the type."""

    total: int | None = None
    """Number of subjects over all pages."""

    offset: int | None = None
    """Where this page of subjects begins."""

    limit: int | None = None
    """Largest number of subjects in a page."""


@frozen(kw_only=True, repr=False)
class StreamListResponse(Model):
    """Answer with a page of streams."""

    type: str | None = "io.nats.jetstream.api.v1.stream_list_response"
    """Name of the type."""

    total: int | None = None
    """Number over all pages."""

    offset: int | None = None
    """Where this page begins."""

    limit: int | None = None
    """Largest number in a page."""

    streams: list[StreamInfo] | None = None
    """The streams."""

    missing: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Streams that did not answer in time. Since server 2.7.0."""

    offline: dict[str, str] | None = None
    """Streams that this server cannot run, by name, with the reason. Since server 2.11.9."""


@frozen(kw_only=True, repr=False)
class StreamCancelMoveResponse(StreamInfo):
    """Answer to the end of a stream's move."""

    type: str | None = "io.nats.jetstream.api.v1.stream_cancel_move_response"
    """Name of the type."""


@frozen(kw_only=True, repr=False)
class StreamSnapshotResponse(Model):
    """Answer that begins a snapshot."""

    type: str | None = "io.nats.jetstream.api.v1.stream_snapshot_response"
    """Name of the type."""

    config: StreamConfig | None = None
    """Settings of the stream."""

    state: StreamState | None = None
    """What the stream holds."""


@frozen(kw_only=True, repr=False)
class StreamRestoreRequest(Model):
    """Asks to bring a stream back from a snapshot."""

    config: StreamConfig
    """Settings as the snapshot gave them."""

    state: StreamState
    """State as the snapshot gave it."""
