"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.codec.open_enum import OpenEnum
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp


class DeliverPolicy(OpenEnum):
    """Where in the stream a consumer begins."""

    ALL = "all"
    """At the first message."""

    LAST = "last"
    """At the last message."""

    NEW = "new"
    """After what is stored now."""

    BY_START_SEQUENCE = "by_start_sequence"
    """At opt_start_seq."""

    BY_START_TIME = "by_start_time"
    """At opt_start_time."""

    LAST_PER_SUBJECT = "last_per_subject"
    """At the last message of each subject, needs a filter."""


DeliverPolicyWord: TypeAlias = Literal[
    "all",
    "last",
    "new",
    "by_start_sequence",
    "by_start_time",
    "last_per_subject",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `DeliverPolicy(value)`.
"""


def deliver_policy(
    value: DeliverPolicy | DeliverPolicyWord | None,
) -> DeliverPolicy | None:
    """Return the member for a value, or None for None."""
    return None if value is None else DeliverPolicy(value)


class AckPolicy(OpenEnum):
    """Which acknowledgements a consumer expects."""

    NONE = "none"
    """None, delivery is enough."""

    ALL = "all"
    """One acknowledges all before it."""

    EXPLICIT = "explicit"
    """Each message by itself."""

    FLOW_CONTROL = "flow_control"
    """By flow control answers, for prepared sources only."""


AckPolicyWord: TypeAlias = Literal[
    "none",
    "all",
    "explicit",
    "flow_control",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `AckPolicy(value)`.
"""


def ack_policy(
    value: AckPolicy | AckPolicyWord | None,
) -> AckPolicy | None:
    """Return the member for a value, or None for None."""
    return None if value is None else AckPolicy(value)


class ReplayPolicy(OpenEnum):
    """How fast stored messages are delivered."""

    INSTANT = "instant"
    """As fast as possible."""

    ORIGINAL = "original"
    """With the gaps between them as they were stored."""


ReplayPolicyWord: TypeAlias = Literal[
    "instant",
    "original",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `ReplayPolicy(value)`.
"""


def replay_policy(
    value: ReplayPolicy | ReplayPolicyWord | None,
) -> ReplayPolicy | None:
    """Return the member for a value, or None for None."""
    return None if value is None else ReplayPolicy(value)


class PriorityPolicy(OpenEnum):
    """How groups of pull requests are served."""

    NONE = "none"
    """No groups."""

    OVERFLOW = "overflow"
    """Only when enough messages are pending."""

    PINNED_CLIENT = "pinned_client"
    """One client at a time."""

    PRIORITIZED = "prioritized"
    """By the priority in the request."""


PriorityPolicyWord: TypeAlias = Literal[
    "none",
    "overflow",
    "pinned_client",
    "prioritized",
]
"""The values that a constructor accepts.

For a value of a newer server, pass `PriorityPolicy(value)`.
"""


def priority_policy(
    value: PriorityPolicy | PriorityPolicyWord | None,
) -> PriorityPolicy | None:
    """Return the member for a value, or None for None."""
    return None if value is None else PriorityPolicy(value)


@frozen(kw_only=True, repr=False)
class ConsumerConfig(Model):
    """Settings of a consumer; what is absent takes the server's default."""

    name: str | None = None
    """Name of the consumer, equal to durable_name where both are given. Since server 2.9.0."""

    durable_name: str | None = None
    """Name of a consumer that is kept while no client uses it."""

    description: str | None = None
    """Free text of at most 4096 bytes. Since server 2.3.3."""

    deliver_policy: DeliverPolicy | None = field(default=None, converter=deliver_policy)
    """Where in the stream to begin."""

    opt_start_seq: int | None = None
    """First sequence, with deliver policy by_start_sequence."""

    opt_start_time: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """Time of the first message, with deliver policy by_start_time."""

    ack_policy: AckPolicy | None = field(default=None, converter=ack_policy)
    """Which acknowledgements are expected, none when absent."""

    ack_wait: Duration | None = field(default=None, converter=converters.optional_duration)
    """
    Time after which an unacknowledged message is delivered again, replaced by the first
    backoff.
    """

    max_deliver: int | None = None
    """Largest number of deliveries of one message, -1 for no limit."""

    backoff: list[Duration] | None = field(default=None, converter=converters.optional_durations)
    """Waits between deliveries, the last one repeats. Since server 2.7.1."""

    filter_subject: str | None = None
    """Only messages on this subject are delivered."""

    filter_subjects: list[str] | None = field(default=None, converter=converters.optional_strings)
    """
    Only messages on these subjects are delivered, excludes filter_subject. Since server
    2.10.0.
    """

    replay_policy: ReplayPolicy | None = field(default=None, converter=replay_policy)
    """How fast stored messages are delivered."""

    rate_limit_bps: int | None = None
    """Largest rate in bits per second, push only, 0 for no limit."""

    sample_freq: str | None = None
    """Share of acknowledgements that are reported, as percent in text."""

    max_waiting: int | None = None
    """Largest number of waiting pull requests, pull only."""

    max_ack_pending: int | None = None
    """Largest number of messages delivered and not acknowledged, -1 for no limit."""

    flow_control: bool | None = None
    """Whether the server paces delivery, push only, needs idle_heartbeat."""

    idle_heartbeat: Duration | None = field(default=None, converter=converters.optional_duration)
    """Interval of signs of life while idle, push only, at least 100 milliseconds."""

    headers_only: bool | None = None
    """Whether payloads are left out and sizes given instead. Since server 2.6.2."""

    max_batch: int | None = None
    """Largest batch of one pull request, 0 for no limit. Since server 2.7.0."""

    max_expires: Duration | None = field(default=None, converter=converters.optional_duration)
    """
    Longest life of one pull request, at least one millisecond, 0 for no limit. Since server
    2.7.0.
    """

    max_bytes: int | None = None
    """Largest max_bytes of one pull request in bytes, 0 for no limit. Since server 2.8.3."""

    deliver_subject: str | None = None
    """Subject that messages are pushed to, makes this a push consumer."""

    deliver_group: str | None = None
    """Queue group of the subscribers, push only. Since server 2.4.0."""

    inactive_threshold: Duration | None = field(
        default=None, converter=converters.optional_duration
    )
    """
    Time without activity after which the consumer is removed, five seconds for those without
    durable_name. Since server 2.7.0.
    """

    num_replicas: int | None = None
    """Copies of the consumer's state, 0 for as many as the stream has. Since server 2.8.3."""

    mem_storage: bool | None = None
    """Whether the state is kept in memory. Since server 2.8.3."""

    direct: bool | None = None
    """Whether this is an internal consumer of a mirror or source, not for clients."""

    sourcing: bool | None = None
    """
    Whether this is an internal consumer that feeds a prepared source, not for clients. Since
    server 2.14.0.
    """

    metadata: dict[str, str] | None = None
    """Free key and value texts of together at most 128 KiB. Since server 2.10.0."""

    pause_until: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """Until when nothing is delivered, only honoured at creation. Since server 2.11.0."""

    priority_groups: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Names of the groups of pull requests, 1 to 16 letters each. Since server 2.11.0."""

    priority_policy: PriorityPolicy | None = field(default=None, converter=priority_policy)
    """How groups of pull requests are served. Since server 2.11.0."""

    priority_timeout: Duration | None = field(default=None, converter=converters.optional_duration)
    """
    Time without pull after which a pinned client loses its place, two minutes when absent.
    Since server 2.11.0.
    """
