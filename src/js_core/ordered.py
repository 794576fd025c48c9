"""Reading a stream in order without gaps: which consumer to make next, and what is in order.

Theory of operation (ADR-17, pull form)
---------------------------------------
An ordered read uses consumers that want no acknowledgement and live in memory. Their messages are
numbered without a gap, so one with another number than the last one plus one tells that
something was lost on the way. Then, and whenever the consumer may be gone, the read makes a new
consumer that starts behind the last stream sequence that was handed over.

* The first consumer starts where the user says. A policy that depends on the moment (new, last)
  must not be asked for again: the position that the first one had stands in for it.
* `last_per_subject` shows one message a subject first. Cut short in that snapshot, the next
  consumer makes the snapshot anew and what was seen of it is skipped; after it, everything from
  the position on is due.
* A stream that was deleted and made anew counts from 1 again: positions in it mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from attrs import evolve

from js_core.ack_reply import Metadata
from js_core.errors import BadArgument
from js_core.moments import comparable
from js_core.subject_match import widest
from js_core.subjects import check_filter
from js_models import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    ConsumerLimits,
    DeliverPolicy,
    DeliverPolicyWord,
    Duration,
    ReplayPolicy,
    Timestamp,
)

__all__ = ["OrderedRead", "ordered_config"]

# Long enough to survive a pause of the reader, short enough not to litter (ADR-17).
_INACTIVE: Final = Duration(minutes=5)


def ordered_config(
    subjects: str | Sequence[str] | None,
    deliver_policy: DeliverPolicy | DeliverPolicyWord | None,
    start_seq: int | None,
    start_time: datetime | None,
    headers_only: bool,
) -> ConsumerConfig:
    """Return what the user wants of an ordered read, as a consumer's configuration."""
    if start_seq is not None and start_time is not None:
        raise BadArgument("give start_seq or start_time, not both")
    if start_seq is not None:
        deliver_policy = DeliverPolicy.BY_START_SEQUENCE
    elif start_time is not None:
        deliver_policy = DeliverPolicy.BY_START_TIME
    filters = [subjects] if isinstance(subjects, str) else list(subjects or ())
    for subject in filters:
        check_filter(subject)
    filters = list(widest(filters))
    if deliver_policy == DeliverPolicy.LAST_PER_SUBJECT and not filters:
        # The server wants a filter with this policy (10094); this one takes all.
        filters = [">"]
    return ConsumerConfig(
        deliver_policy=DeliverPolicy(deliver_policy or DeliverPolicy.ALL),
        opt_start_seq=start_seq,
        opt_start_time=None if start_time is None else comparable(start_time, "start_time"),
        filter_subject=filters[0] if len(filters) == 1 else None,
        filter_subjects=filters if len(filters) > 1 else None,
        headers_only=headers_only or None,
    )


class OrderedRead:
    """The state of one ordered read."""

    def __init__(self, config: ConsumerConfig, prefix: str) -> None:
        self._wanted: Final = config
        self._prefix: Final = prefix
        self._serial = 0
        self._snapshot_left = 0
        self._consumer_seq = 0
        self._created: Timestamp | None = None
        self.position = 0
        """The stream sequence of the last message handed over; 0 before the first."""
        self._known = False

    @property
    def name(self) -> str:
        """The name of the present consumer."""
        return f"{self._prefix}_{self._serial}"

    def next_config(self, limits: ConsumerLimits | None = None) -> ConsumerConfig:
        """Return the configuration of the next consumer, within the limits of its stream."""
        self._serial += 1
        self._consumer_seq = 0
        idle = self._wanted.inactive_threshold or _INACTIVE
        if limits is not None and limits.inactive_threshold:
            idle = min(idle, limits.inactive_threshold)
        config = evolve(
            self._wanted,
            name=self.name,
            durable_name=None,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            num_replicas=1,
            max_deliver=1,
            inactive_threshold=idle,
            replay_policy=self._wanted.replay_policy or ReplayPolicy.INSTANT,
        )
        if not self._known or self._snapshot_left > 0:
            return config
        return evolve(
            config,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.position + 1,
            opt_start_time=None,
        )

    def made(self, info: ConsumerInfo) -> None:
        """Note that the consumer was made, and where it stands."""
        if self._wanted.deliver_policy == DeliverPolicy.LAST_PER_SUBJECT:
            if not self._known or self._snapshot_left > 0:
                self._snapshot_left = info.num_pending or 0
        elif not self._known and info.delivered is not None:
            # "new" and "last" begin behind this; it stands in for them from now on.
            self.position = max(self.position, info.delivered.stream_seq)
        self._known = True

    def found_stream(self, created: Timestamp) -> bool:
        """Note when the stream was made; tell whether it is another one than before.

        The read of another stream of the same name begins at its beginning.
        """
        another = self._created is not None and self._created != created
        self._created = created
        if another:
            self.position = 0
            self._snapshot_left = 0
            self._known = True
        return another

    def is_in_order(self, metadata: Metadata) -> bool:
        """Tell whether a message is the one that comes next; nothing is noted of it."""
        return metadata.consumer_seq == self._consumer_seq + 1

    def take(self, metadata: Metadata) -> bool:
        """Note a message in order; tell whether to hand it over, or skip it as seen before."""
        self._consumer_seq = metadata.consumer_seq
        in_snapshot = self._snapshot_left > 0
        self._snapshot_left = max(0, self._snapshot_left - 1)
        if in_snapshot and metadata.stream_seq <= self.position:
            return False
        self.position = metadata.stream_seq
        return True
