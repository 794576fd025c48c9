"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.generated.common import ApiError
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class StreamMessageGetRequest(Model):
    """Asks the leader for one stored message."""

    seq: int | None = None
    """Its sequence, or the first to look at."""

    last_by_subj: str | None = None
    """The last message on this subject. Since server 2.3.0."""

    next_by_subj: str | None = None
    """The next message on this subject. Since server 2.9.0."""

    start_time: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """The first message at or after this time. Since server 2.11.0."""

    no_hdr: bool | None = None
    """Whether headers are left out. Since server 2.12.0."""


@frozen(kw_only=True, repr=False)
class StoredMessage(Model):
    """A message as the stream holds it."""

    subject: str
    """Its subject."""

    seq: int
    """Its sequence."""

    time: Timestamp = field(converter=converters.timestamp)
    """When it was stored."""

    hdrs: bytes | None = None
    """Its headers as a block of the wire format."""

    data: bytes | None = None
    """Its payload."""


@frozen(kw_only=True, repr=False)
class StreamMessageGetResponse(Model):
    """Answer with a stored message."""

    type: str | None = "io.nats.jetstream.api.v1.stream_msg_get_response"
    """Name of the type."""

    message: StoredMessage | None = None
    """The message."""


@frozen(kw_only=True, repr=False)
class StreamMessageDeleteRequest(Model):
    """Asks to remove one message."""

    seq: int
    """Its sequence."""

    no_erase: bool | None = None
    """Whether its bytes may stay on disk."""


@frozen(kw_only=True, repr=False)
class StreamMessageDeleteResponse(Model):
    """Answer to the removal of a message."""

    type: str | None = "io.nats.jetstream.api.v1.stream_msg_delete_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it is gone."""


@frozen(kw_only=True, repr=False)
class DirectGetRequest(Model):
    """Asks any replica for stored messages."""

    seq: int | None = None
    """The sequence, or the first to look at."""

    last_by_subj: str | None = None
    """The last message on this subject."""

    next_by_subj: str | None = None
    """The next message on this subject."""

    start_time: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """The first message at or after this time. Since server 2.11.0."""

    batch: int | None = None
    """Largest number of messages. Since server 2.11.0."""

    max_bytes: int | None = None
    """Largest size of all messages in bytes. Since server 2.11.0."""

    multi_last: list[str] | None = field(default=None, converter=converters.optional_strings)
    """The last message on each of these subjects. Since server 2.11.0."""

    up_to_seq: int | None = None
    """Nothing after this sequence. Since server 2.11.0."""

    up_to_time: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """Nothing after this time. Since server 2.11.0."""

    no_hdr: bool | None = None
    """Whether headers are left out. Since server 2.12.0."""


@frozen(kw_only=True, repr=False)
class PubAck(Model):
    """The stream's word that a message is stored."""

    stream: str
    """Name of the stream."""

    seq: int
    """Sequence that the message got."""

    domain: str | None = None
    """JetStream domain of the stream. Since server 2.3.0."""

    duplicate: bool | None = None
    """Whether the message id was known, so that nothing was stored."""

    val: str | None = None
    """Value of the counter after the increment. Since server 2.12.0."""

    batch: str | None = None
    """Identity of the batch that was committed. Since server 2.12.0."""

    count: int | None = None
    """Number of messages in that batch. Since server 2.12.0."""


@frozen(kw_only=True, repr=False)
class PublishResponse(PubAck):
    """Answer to a publish that may carry an error."""

    error: ApiError | None = None
    """Why the message was not stored."""


@frozen(kw_only=True, repr=False)
class BatchFlowAck(Model):
    """Sign that a fast batch is handled up to a sequence."""

    type: str | None = "ack"
    """Kind of the answer."""

    seq: int
    """Place in the batch that is handled."""

    msgs: int | None = None
    """Messages until the next answer."""


@frozen(kw_only=True, repr=False)
class BatchFlowGap(Model):
    """Sign that messages of a fast batch are missing."""

    type: str | None = "gap"
    """Kind of the answer."""

    last_seq: int
    """First place that is missing."""

    seq: int
    """Place of the message that came instead."""


@frozen(kw_only=True, repr=False)
class BatchFlowError(Model):
    """Sign that a message of a fast batch was refused."""

    type: str | None = "err"
    """Kind of the answer."""

    seq: int
    """Its place in the batch."""

    error: ApiError
    """Why it was refused."""
