"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.generated.common import ClusterInfo, Placement
from twinstream.models.generated.config.consumer import ConsumerConfig
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp


class ConsumerCreateAction(OpenEnum):
    """What a create request may do."""

    CREATE = "create"
    """Fail when a consumer of this name has other settings."""

    UPDATE = "update"
    """Fail when there is no consumer of this name."""


ConsumerCreateActionWord: TypeAlias = Literal[
    "create",
    "update",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `ConsumerCreateAction(value)`.
"""


def consumer_create_action(
    value: ConsumerCreateAction | ConsumerCreateActionWord | None,
) -> ConsumerCreateAction | None:
    """Return the member for a value, or None for None."""
    return None if value is None else ConsumerCreateAction(value)


@frozen(kw_only=True, repr=False)
class SequenceInfo(Model):
    """A place in the consumer's and in the stream's counting."""

    consumer_seq: int
    """Sequence of the delivery."""

    stream_seq: int
    """Sequence in the stream."""

    last_active: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When it was reached. Since server 2.2.3."""


@frozen(kw_only=True, repr=False)
class PriorityGroupState(Model):
    """The state of a group of pull requests."""

    group: str
    """Name of the group."""

    pinned_client_id: str | None = None
    """Pin of the client that is served."""

    pinned_ts: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When it was pinned."""


@frozen(kw_only=True, repr=False)
class ConsumerDeleteResponse(Model):
    """Answer to the removal of a consumer."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_delete_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it is gone."""


@frozen(kw_only=True, repr=False)
class ConsumerNamesRequest(Model):
    """Asks for the names of a stream's consumers."""

    offset: int | None = None
    """Where the page begins."""


@frozen(kw_only=True, repr=False)
class ConsumerNamesResponse(Model):
    """Answer with a page of names."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_names_response"
    """Name of the type."""

    total: int | None = None
    """Number over all pages."""

    offset: int | None = None
    """Where this page begins."""

    limit: int | None = None
    """Largest number in a page."""

    consumers: list[str] | None = field(default=None, converter=converters.optional_strings)
    """The names."""


@frozen(kw_only=True, repr=False)
class ConsumerListRequest(Model):
    """Asks for a stream's consumers with settings and state."""

    offset: int | None = None
    """Where the page begins."""


@frozen(kw_only=True, repr=False)
class ConsumerPauseRequest(Model):
    """Asks to pause a consumer, or to go on."""

    pause_until: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """End of the pause; absent or past means go on."""


@frozen(kw_only=True, repr=False)
class ConsumerPauseResponse(Model):
    """Answer with the state of the pause."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_pause_response"
    """Name of the type."""

    paused: bool | None = None
    """Whether delivery is paused."""

    pause_until: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """End of the pause."""

    pause_remaining: Duration | None = field(default=None, converter=converters.optional_duration)
    """How long it still lasts."""


@frozen(kw_only=True, repr=False)
class ConsumerResetRequest(Model):
    """Asks to set a consumer back; an empty body means to its acknowledge floor."""

    seq: int | None = None
    """Sequence to deliver next."""


@frozen(kw_only=True, repr=False)
class ConsumerUnpinRequest(Model):
    """Asks to take the pin from a group's client."""

    group: str
    """Name of the group."""


@frozen(kw_only=True, repr=False)
class ConsumerUnpinResponse(Model):
    """Answer to the removal of a pin."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_unpin_response"
    """Name of the type."""


@frozen(kw_only=True, repr=False)
class ConsumerLeaderStepdownRequest(Model):
    """Asks a consumer's leader to hand over."""

    placement: Placement | None = None
    """Where the next leader should be."""


@frozen(kw_only=True, repr=False)
class ConsumerLeaderStepdownResponse(Model):
    """Answer to the hand-over of a consumer's leader."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_leader_stepdown_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it began."""


@frozen(kw_only=True, repr=False)
class PullRequest(Model):
    """Asks a pull consumer for messages."""

    batch: int | None = None
    """Largest number of messages, 1 when absent or 0."""

    expires: Duration | None = field(default=None, converter=converters.optional_duration)
    """Life of the request, endless when absent."""

    no_wait: bool | None = None
    """Whether to end as soon as nothing more is there."""

    max_bytes: int | None = None
    """Largest size of all messages in bytes. Since server 2.8.3."""

    idle_heartbeat: Duration | None = field(default=None, converter=converters.optional_duration)
    """Interval of signs of life, at most half of expires. Since server 2.7.3."""

    group: str | None = None
    """Group that the request belongs to. Since server 2.11.0."""

    min_pending: int | None = None
    """Serve only when this many messages are pending, with policy overflow. Since server 2.11.0."""

    min_ack_pending: int | None = None
    """
    Serve only when this many acknowledgements are pending, with policy overflow. Since server
    2.11.0.
    """

    id: str | None = None
    """Pin of the client, with policy pinned_client. Since server 2.11.0."""

    priority: int | None = None
    """Place in the line, 0 first to 9 last, with policy prioritized. Since server 2.12.0."""


@frozen(kw_only=True, repr=False)
class NakOptions(Model):
    """What may follow a negative acknowledgement."""

    delay: Duration | None = field(default=None, converter=converters.optional_duration)
    """Time until the message is delivered again."""


@frozen(kw_only=True, repr=False)
class ConsumerCreateRequest(Model):
    """Asks for a consumer."""

    stream_name: str
    """Name of the stream."""

    config: ConsumerConfig
    """Settings of the consumer."""

    action: ConsumerCreateAction | None = field(default=None, converter=consumer_create_action)
    """What the request may do, both when absent. Since server 2.10.0."""

    pedantic: bool | None = None
    """Whether a setting that the server would change is an error. Since server 2.11.0."""


@frozen(kw_only=True, repr=False)
class ConsumerInfo(Model):
    """A consumer's settings and state."""

    stream_name: str
    """Name of the stream."""

    name: str
    """Name of the consumer."""

    created: Timestamp = field(converter=converters.timestamp)
    """When the consumer was made."""

    config: ConsumerConfig | None = None
    """Settings with all defaults filled in."""

    delivered: SequenceInfo | None = None
    """The last message delivered."""

    ack_floor: SequenceInfo | None = None
    """The last message up to which all are acknowledged."""

    num_ack_pending: int | None = None
    """Messages delivered and not acknowledged."""

    num_redelivered: int | None = None
    """Messages delivered more than once and not acknowledged."""

    num_waiting: int | None = None
    """Pull requests that wait."""

    num_pending: int | None = None
    """Messages still to deliver."""

    cluster: ClusterInfo | None = None
    """The servers that hold it."""

    push_bound: bool | None = None
    """Whether a client listens on the deliver subject. Since server 2.4.0."""

    paused: bool | None = None
    """Whether delivery is paused. Since server 2.11.0."""

    pause_remaining: Duration | None = field(default=None, converter=converters.optional_duration)
    """How long the pause still lasts. Since server 2.11.0."""

    ts: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When this answer was made. Since server 2.10.0."""

    priority_groups: list[PriorityGroupState] | None = None
    """The groups of pull requests. Since server 2.11.0."""


@frozen(kw_only=True, repr=False)
class ConsumerCreateResponse(ConsumerInfo):
    """Answer with the consumer."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_create_response"
    """Name of the type."""


@frozen(kw_only=True, repr=False)
class ConsumerInfoResponse(ConsumerInfo):
    """Answer with a consumer's settings and state."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_info_response"
    """Name of the type."""


@frozen(kw_only=True, repr=False)
class ConsumerListResponse(Model):
    """Answer with a page of consumers."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_list_response"
    """Name of the type."""

    total: int | None = None
    """Number over all pages."""

    offset: int | None = None
    """Where this page begins."""

    limit: int | None = None
    """Largest number in a page."""

    consumers: list[ConsumerInfo] | None = None
    """The consumers."""

    missing: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Consumers that did not answer in time. Since server 2.7.0."""

    offline: dict[str, str] | None = None
    """Consumers that this server cannot run, by name, with the reason. Since server 2.11.9."""


@frozen(kw_only=True, repr=False)
class ConsumerResetResponse(ConsumerInfo):
    """Answer with the consumer that was set back."""

    type: str | None = "io.nats.jetstream.api.v1.consumer_reset_response"
    """Name of the type."""

    reset_seq: int | None = None
    """Sequence that comes next."""
