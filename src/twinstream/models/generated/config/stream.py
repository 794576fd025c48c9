"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.generated.common import Placement
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp


class RetentionPolicy(OpenEnum):
    """What makes a message leave the stream."""

    LIMITS = "limits"
    """Only the limits on age, number and size."""

    INTEREST = "interest"
    """Also when every interested consumer acknowledged it."""

    WORKQUEUE = "workqueue"
    """Also when one consumer acknowledged it."""


RetentionPolicyWord: TypeAlias = Literal[
    "limits",
    "interest",
    "workqueue",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `RetentionPolicy(value)`.
"""


def retention_policy(
    value: RetentionPolicy | RetentionPolicyWord | None,
) -> RetentionPolicy | None:
    """Return the member for a value, or None for None."""
    return None if value is None else RetentionPolicy(value)


class DiscardPolicy(OpenEnum):
    """What happens when a stream is full."""

    OLD = "old"
    """The oldest messages make room."""

    NEW = "new"
    """The new message is refused."""


DiscardPolicyWord: TypeAlias = Literal[
    "old",
    "new",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `DiscardPolicy(value)`.
"""


def discard_policy(
    value: DiscardPolicy | DiscardPolicyWord | None,
) -> DiscardPolicy | None:
    """Return the member for a value, or None for None."""
    return None if value is None else DiscardPolicy(value)


class StorageType(OpenEnum):
    """Where messages are kept."""

    FILE = "file"
    """On disk."""

    MEMORY = "memory"
    """In memory, lost when the server stops."""


StorageTypeWord: TypeAlias = Literal[
    "file",
    "memory",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `StorageType(value)`.
"""


def storage_type(
    value: StorageType | StorageTypeWord | None,
) -> StorageType | None:
    """Return the member for a value, or None for None."""
    return None if value is None else StorageType(value)


class Compression(OpenEnum):
    """How blocks are compressed."""

    NONE = "none"
    """Not at all."""

    S2 = "s2"
    """With S2, a faster variant of Snappy."""


CompressionWord: TypeAlias = Literal[
    "none",
    "s2",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `Compression(value)`.
"""


def compression(
    value: Compression | CompressionWord | None,
) -> Compression | None:
    """Return the member for a value, or None for None."""
    return None if value is None else Compression(value)


class PersistMode(OpenEnum):
    """When a write counts as stored."""

    DEFAULT = "default"
    """When it reached the store."""

    ASYNC = "async"
    """Before it reached the store, faster and less safe."""


PersistModeWord: TypeAlias = Literal[
    "default",
    "async",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `PersistMode(value)`.
"""


def persist_mode(
    value: PersistMode | PersistModeWord | None,
) -> PersistMode | None:
    """Return the member for a value, or None for None."""
    return None if value is None else PersistMode(value)


@frozen(kw_only=True, repr=False)
class ExternalStream(Model):
    """How to reach a stream in another account or domain."""

    api: str | None = None
    """Prefix of the JetStream API there, such as $JS.hub.API."""

    deliver: str | None = None
    """Prefix of the subject that messages come on."""


@frozen(kw_only=True, repr=False)
class SourceConsumer(Model):
    """A prepared consumer on the origin that feeds a mirror or source."""

    name: str | None = None
    """Name of the consumer."""

    deliver_subject: str | None = None
    """Subject that it delivers to."""


@frozen(kw_only=True, repr=False)
class SubjectTransform(Model):
    """A change of subject."""

    src: str | None = None
    """Subject to match, everything when empty."""

    dest: str | None = None
    """Pattern of the new subject, with functions such as {{wildcard(1)}}."""


@frozen(kw_only=True, repr=False)
class Republish(Model):
    """Where stored messages are published again."""

    src: str | None = None
    """Subject to match, everything when empty."""

    dest: str | None = None
    """Pattern of the subject to publish on."""

    headers_only: bool | None = None
    """Whether the payload is left out. Since server 2.9.0."""


@frozen(kw_only=True, repr=False)
class ConsumerLimits(Model):
    """Defaults and upper bounds that a stream sets for its consumers."""

    inactive_threshold: Duration | None = field(
        default=None, converter=converters.optional_duration
    )
    """Longest time without activity after which a consumer is removed, 0 for no limit."""

    max_ack_pending: int | None = None
    """Largest max_ack_pending, 0 for no limit."""


@frozen(kw_only=True, repr=False)
class StreamSource(Model):
    """A stream that another one copies from."""

    name: str | None = None
    """Name of the origin stream."""

    opt_start_seq: int | None = None
    """First sequence to copy."""

    opt_start_time: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """Time of the first message to copy."""

    filter_subject: str | None = None
    """Only messages on this subject are copied."""

    subject_transforms: list[SubjectTransform] | None = None
    """Filters, each with a change of subject. Since server 2.10.0."""

    external: ExternalStream | None = None
    """How to reach an origin in another account or domain."""

    consumer: SourceConsumer | None = None
    """Consumer on the origin that feeds the copy. Since server 2.14.0."""


@frozen(kw_only=True, repr=False)
class KeyValueConfig(Model):
    """Settings of a key-value bucket; what is absent takes the default."""

    bucket: str
    """Name of the bucket, of the characters A-Z a-z 0-9 _ -, fixed for its life."""

    description: str | None = None
    """Free text of at most 4096 bytes."""

    history: int | None = None
    """Number of revisions that are kept of each key, 1 to 64."""

    ttl: Duration | None = field(default=None, converter=converters.optional_duration)
    """Age at which each revision is removed, at least 100 milliseconds, 0 for never."""

    limit_marker_ttl: Duration | None = field(default=None, converter=converters.optional_duration)
    """
    How long the marker of an expired key stays, at least one second; it also allows a TTL for
    each key, which cannot be turned off. Since server 2.11.0.
    """

    max_value_size: int | None = None
    """Largest size of one value with its headers in bytes, -1 for no limit."""

    max_bytes: int | None = None
    """Largest size of the bucket in bytes, -1 for no limit; a full bucket refuses new revisions."""

    storage: StorageType | None = field(default=None, converter=storage_type)
    """Where values are kept, fixed for the bucket's life."""

    num_replicas: int | None = None
    """Copies of each value in a cluster, 1 to 5."""

    placement: Placement | None = None
    """Where in the cluster the bucket may live."""

    republish: Republish | None = None
    """Where stored revisions are published again. Since server 2.8.3."""

    compression: bool | None = None
    """Whether file storage is compressed. Since server 2.10.0."""

    metadata: dict[str, str] | None = None
    """Free key and value texts of together at most 128 KiB. Since server 2.10.0."""

    mirror: StreamSource | None = None
    """Bucket that this one copies whole; its name may be that of the bucket or of its stream."""

    sources: list[StreamSource] | None = None
    """Buckets whose keys are added to this one, named as a mirror's."""


@frozen(kw_only=True, repr=False)
class ObjectStoreConfig(Model):
    """Settings of an object store, which is a stream with the name `OBJ_` and the bucket."""

    bucket: str
    """Name of the store: letters, digits, underscores and hyphens."""

    description: str | None = None
    """Free text of at most 4096 bytes."""

    ttl: Duration | None = field(default=None, converter=converters.optional_duration)
    """Age at which objects are removed, at least 100 milliseconds, 0 for never."""

    max_bytes: int | None = None
    """Largest size of the store in bytes with the metadata of its objects, -1 for no limit."""

    storage: StorageType | None = field(default=None, converter=storage_type)
    """Where objects are kept, fixed for the store's life."""

    num_replicas: int | None = None
    """Copies of each object in a cluster, 1 to 5."""

    placement: Placement | None = None
    """Where in a cluster the store may live."""

    compression: bool | None = None
    """Whether the server compresses what it stores on disk. Since server 2.10.0."""

    metadata: dict[str, str] | None = None
    """Free key and value texts of together at most 128 KiB. Since server 2.10.0."""

    mirror: StreamSource | None = None
    """Store to copy, by the name of its bucket or stream; the copy can only be read."""


@frozen(kw_only=True, repr=False)
class StreamConfig(Model):
    """Settings of a stream; what is absent takes the server's default."""

    name: str | None = None
    """Name of the stream, fixed for its life."""

    description: str | None = None
    """Free text of at most 4096 bytes. Since server 2.3.3."""

    subjects: list[str] | None = field(default=None, converter=converters.optional_strings)
    """
    Subjects that the stream captures, its own name when absent and there is neither mirror
    nor sources.
    """

    retention: RetentionPolicy | None = field(default=None, converter=retention_policy)
    """What makes a message leave the stream."""

    max_consumers: int | None = None
    """Largest number of consumers, -1 for no limit."""

    max_msgs: int | None = None
    """Largest number of messages, -1 for no limit."""

    max_bytes: int | None = None
    """Largest size of the stream in bytes, -1 for no limit."""

    max_age: Duration | None = field(default=None, converter=converters.optional_duration)
    """Largest age of a message, at least 100 milliseconds, 0 for no limit."""

    max_msgs_per_subject: int | None = None
    """Largest number of messages on each subject, -1 for no limit. Since server 2.3.0."""

    max_msg_size: int | None = None
    """Largest size of one message in bytes, -1 for no limit."""

    discard: DiscardPolicy | None = field(default=None, converter=discard_policy)
    """What happens when a limit is reached."""

    storage: StorageType | None = field(default=None, converter=storage_type)
    """Where messages are kept, fixed for the stream's life."""

    num_replicas: int | None = None
    """Copies of each message in a cluster, 1 to 5."""

    no_ack: bool | None = None
    """Whether publishers get no answer."""

    duplicate_window: Duration | None = field(default=None, converter=converters.optional_duration)
    """How long message ids are remembered, the smaller of two minutes and max_age when absent."""

    placement: Placement | None = None
    """Where in the cluster the stream may live."""

    mirror: StreamSource | None = None
    """Stream that this one copies whole."""

    sources: list[StreamSource] | None = None
    """Streams whose messages are added to this one."""

    compression: Compression | None = field(default=None, converter=compression)
    """How blocks are compressed in file storage. Since server 2.10.0."""

    first_seq: int | None = None
    """Sequence of the first message. Since server 2.10.0."""

    subject_transform: SubjectTransform | None = None
    """How subjects change before messages are stored. Since server 2.10.0."""

    republish: Republish | None = None
    """Where stored messages are published again. Since server 2.8.3."""

    sealed: bool | None = None
    """Whether the stream is closed for good, only an update can set it. Since server 2.6.2."""

    deny_delete: bool | None = None
    """Whether messages cannot be deleted, cannot be unset. Since server 2.6.2."""

    deny_purge: bool | None = None
    """Whether the stream cannot be purged, cannot be unset. Since server 2.6.2."""

    allow_rollup_hdrs: bool | None = None
    """
    Whether a message may replace all earlier ones of its subject or stream. Since server
    2.6.2.
    """

    allow_direct: bool | None = None
    """Whether every replica answers direct reads. Since server 2.9.0."""

    mirror_direct: bool | None = None
    """Whether a mirror answers direct reads for its origin. Since server 2.9.0."""

    discard_new_per_subject: bool | None = None
    """
    Whether a full subject refuses new messages, needs discard new and max_msgs_per_subject.
    Since server 2.9.1.
    """

    metadata: dict[str, str] | None = None
    """Free key and value texts of together at most 128 KiB. Since server 2.10.0."""

    consumer_limits: ConsumerLimits | None = None
    """Defaults and upper bounds for the stream's consumers. Since server 2.10.0."""

    allow_msg_ttl: bool | None = None
    """
    Whether messages may carry their own time to live, cannot be turned off. Since server
    2.11.0.
    """

    subject_delete_marker_ttl: Duration | None = field(
        default=None, converter=converters.optional_duration
    )
    """
    How long a marker stays after the last message of a subject aged out, at least one second,
    0 for no marker. Since server 2.11.0.
    """

    allow_msg_counter: bool | None = None
    """
    Whether messages are increments of counters, fixed for the stream's life. Since server
    2.12.0.
    """

    allow_atomic: bool | None = None
    """Whether batches may be published atomically. Since server 2.12.0."""

    allow_msg_schedules: bool | None = None
    """
    Whether messages may be schedules that publish others, cannot be turned off. Since server
    2.12.0.
    """

    persist_mode: PersistMode | None = field(default=None, converter=persist_mode)
    """When a write counts as stored, fixed for the stream's life. Since server 2.12.0."""

    allow_batched: bool | None = None
    """Whether batches may be published with fast ingest. Since server 2.14.0."""
