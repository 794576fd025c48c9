"""The configurations of the consumers that an ordered read creates, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from attrs import evolve

from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.wire.request_times import comparable
from twinstream.core.wire.selection import subject_filters
from twinstream.core.wire.subject_match import widest
from twinstream.errors import BadArgument
from twinstream.models import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DeliverPolicyWord,
    Duration,
    ReplayPolicy,
    StreamConfig,
)

__all__ = ["OrderedConfigs", "ordered_config"]

# The time after which the server deletes an idle consumer. It is long enough for a reader that
# pauses, and short enough that not many unused consumers remain (ADR-17).
_INACTIVE: Final = Duration(minutes=5)
# Seconds. The consumer must survive the time between two requests.
_MIN_INACTIVE: Final = 1.0


def ordered_config(
    subjects: str | Iterable[str] | None,
    deliver_policy: DeliverPolicy | DeliverPolicyWord | None,
    start_seq: int | None,
    start_time: datetime | None,
    headers_only: bool,
    *,
    replay_policy: ReplayPolicy | str | None = None,
    inactive_threshold: Seconds | None = None,
    metadata: Mapping[str, str] | None = None,
) -> ConsumerConfig:
    """Return the caller's settings of an ordered read as a consumer configuration.

    Raises `BadArgument` for invalid settings.
    """
    if start_seq is not None and start_time is not None:
        raise BadArgument("pass start_seq or start_time, not both")
    deliver_policy = _policy(deliver_policy, start_seq, start_time)
    filters = list(widest(subject_filters(subjects)))
    if deliver_policy == DeliverPolicy.LAST_PER_SUBJECT and not filters:
        # The server requires a filter with this policy (10094). This filter matches everything.
        filters = [">"]
    return ConsumerConfig(
        deliver_policy=deliver_policy,
        opt_start_seq=start_seq,
        opt_start_time=None if start_time is None else comparable(start_time, "start_time"),
        filter_subject=filters[0] if len(filters) == 1 else None,
        filter_subjects=filters if len(filters) > 1 else None,
        headers_only=headers_only or None,
        replay_policy=None if replay_policy is None else ReplayPolicy(replay_policy),
        inactive_threshold=_idle(inactive_threshold),
        metadata=None if metadata is None else _words(metadata),
    )


def _policy(
    wanted: DeliverPolicy | DeliverPolicyWord | None,
    start_seq: int | None,
    start_time: datetime | None,
) -> DeliverPolicy:
    """Return the policy that the arguments mean together."""
    starts = {
        DeliverPolicy.BY_START_SEQUENCE: ("start_seq", start_seq),
        DeliverPolicy.BY_START_TIME: ("start_time", start_time),
    }
    given = next((each for each, (_, start) in starts.items() if start is not None), None)
    policy = None if wanted is None else DeliverPolicy(wanted)
    if given is None and policy is not None and policy in starts:
        raise BadArgument(f"deliver_policy {policy.value} needs {starts[policy][0]}=")
    if given is not None and policy not in (None, given):
        raise BadArgument(
            f"{starts[given][0]} is where the read starts, so deliver_policy {wanted!r} does not"
            " apply: leave one of them out"
        )
    return given or policy or DeliverPolicy.ALL


def _words(metadata: Mapping[str, str]) -> dict[str, str]:
    given = dict(metadata)
    for word in (*given, *given.values()):
        check_kind(word, str, "each key and value of metadata", "a string")
    return given


def _idle(inactive_threshold: Seconds | None) -> Duration | None:
    if inactive_threshold is None:
        return None
    idle = finite_seconds(inactive_threshold, "inactive_threshold")
    if idle < _MIN_INACTIVE:
        raise BadArgument(
            f"inactive_threshold must be at least {_MIN_INACTIVE:g} s, got"
            f" {inactive_threshold!r}: the consumer could be deleted between two requests"
        )
    return Duration(seconds=idle)


class OrderedConfigs:
    """The names and configurations of a read's consumers. `wanted` has the caller's settings.

    If the creation of a consumer failed, its name is used again. If the server created that
    consumer nevertheless, it treats the request as a repetition.
    """

    def __init__(self, wanted: ConsumerConfig, prefix: str) -> None:
        self._wanted: Final = wanted
        self._prefix: Final = prefix
        self._serial = 1
        self._is_made = False
        self._most_idle: Duration | None = None
        self.is_snapshot: Final = wanted.deliver_policy == DeliverPolicy.LAST_PER_SUBJECT
        """Whether the read begins with the last message of each subject."""
        self.is_of_new: Final = wanted.deliver_policy == DeliverPolicy.NEW
        """Whether the read begins with the next message that is stored."""

    @property
    def name(self) -> str:
        """The name of the current consumer, or of the next consumer before it is created."""
        return f"{self._prefix}_{self._serial}"

    def rename(self) -> None:
        """Choose another name for the next consumer."""
        self._serial += 1
        self._is_made = False

    def made(self) -> None:
        """Record that the consumer was created."""
        self._is_made = True

    def found_stream(self, config: StreamConfig) -> None:
        """Adopt the limits of a stream."""
        limits = config.consumer_limits
        self._most_idle = limits.inactive_threshold if limits is not None else None

    def next(self, start_seq: int | None) -> ConsumerConfig:
        """Return the configuration of the next consumer, within the limits of its stream.

        It starts at `start_seq`, or where the caller requested if this is None.
        """
        if self._is_made:
            self.rename()
        config = evolve(
            self._wanted,
            name=self.name,
            durable_name=None,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            num_replicas=1,
            max_deliver=1,
            inactive_threshold=self._wanted.inactive_threshold or self._default_idle(),
            replay_policy=self._wanted.replay_policy or ReplayPolicy.INSTANT,
        )
        if start_seq is None:
            return config
        return evolve(
            config,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=start_seq,
            opt_start_time=None,
        )

    def _default_idle(self) -> Duration:
        return min(_INACTIVE, self._most_idle) if self._most_idle else _INACTIVE
