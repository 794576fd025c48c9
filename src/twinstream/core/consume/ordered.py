"""Reading a stream in order without gaps: which consumer to make next, and what is in order.

Theory of operation (ADR-17, pull form)
---------------------------------------
An ordered read uses consumers that want no acknowledgement and live in memory. Their messages are
numbered without a gap. A message with another number than the last one plus one shows that
something was lost. So does an idle heartbeat, which says how many messages were sent before it.
Then, and whenever the consumer may be gone, the read makes a new consumer that starts after the
last stream sequence that was handed over.

* The first consumer starts where the user says. A policy that depends on the moment (new, last)
  must not be asked for again: the position that the first consumer had replaces it.
* An idle heartbeat also says up to which stream sequence the server has looked for messages. When
  all messages before it were handed over, the next consumer starts there, so that it need not look
  through the same part of the stream again.
* `last_per_subject` is a snapshot, the last message of each subject, and then every message that
  was stored after the read began. The stream's last sequence, asked for before the first consumer
  is made, divides the two. The snapshot is over when a message at or above it was handed over or
  the server has looked beyond it. `num_pending` proves nothing: it counts messages that were
  overwritten or removed since.
* Where the stream keeps one message of each subject, each message that it still has is the last
  of its subject. A new consumer goes on after the position, in the snapshot and after it.
* Where it keeps more, a consumer made in the middle of the snapshot takes the snapshot again, and
  what was handed over is skipped. Its snapshot is a later one: it lacks messages that were stored
  since the read began and overwritten already. So it is good up to the dividing sequence only; then
  another consumer delivers every message after that.
* On such a stream the server forgets a message of the snapshot when it does not fit into the bytes
  that a pull request has left (2.11 to 2.15). So the requests for a snapshot are by count, and here
  too another consumer takes over at the end of it.
* A stream that was deleted and created again counts from 1 again: positions in it mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from attrs import evolve

from twinstream.core.consume.metadata import Metadata
from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadArgument
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.base.timestamps import comparable
from twinstream.core.wire.status import Status
from twinstream.core.wire.subject_match import widest
from twinstream.core.wire.subjects import check_filter
from twinstream.models import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    DeliverPolicy,
    DeliverPolicyWord,
    Duration,
    ReplayPolicy,
    StreamInfo,
    Timestamp,
)

__all__ = ["Mark", "OrderedRead", "ordered_config"]

# Long enough to survive a pause of the reader, short enough not to litter (ADR-17).
_INACTIVE: Final = Duration(minutes=5)
# A request takes its time to the server and back.
_LEAST_INACTIVE: Final = 1.0


def ordered_config(
    subjects: str | Sequence[str] | None,
    deliver_policy: DeliverPolicy | DeliverPolicyWord | None,
    start_seq: int | None,
    start_time: datetime | None,
    headers_only: bool,
    *,
    replay_policy: ReplayPolicy | str | None = None,
    inactive_threshold: Seconds | None = None,
    metadata: Mapping[str, str] | None = None,
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
        replay_policy=None if replay_policy is None else ReplayPolicy(replay_policy),
        inactive_threshold=_idle(inactive_threshold),
        metadata=None if metadata is None else _words(metadata),
    )


def _words(metadata: Mapping[str, str]) -> dict[str, str]:
    given = dict(metadata)
    for word in (*given, *given.values()):
        check_kind(word, str, "each key and value of metadata", "a string")
    return given


def _idle(inactive_threshold: Seconds | None) -> Duration | None:
    if inactive_threshold is None:
        return None
    idle = finite_seconds(inactive_threshold, "inactive_threshold")
    if idle < _LEAST_INACTIVE:
        raise BadArgument(
            f"inactive_threshold must be at least {_LEAST_INACTIVE:g} s, got"
            f" {inactive_threshold!r}: between two requests the consumer would vanish"
        )
    return Duration(seconds=idle)


Mark = tuple[Timestamp | None, int, int]
"""Where a read stands: when its stream was created, its position, and what was looked through."""


class OrderedRead:
    """The state of one ordered read.

    `by_bytes` is whether its pull requests have a limit of bytes.
    """

    def __init__(self, config: ConsumerConfig, prefix: str, *, by_bytes: bool = False) -> None:
        self._wanted: Final = config
        self._prefix: Final = prefix
        self._by_bytes: Final = by_bytes
        self._is_snapshot: Final = config.deliver_policy == DeliverPolicy.LAST_PER_SUBJECT
        self._serial = 1
        self._is_made = False
        # Whether a consumer was made: from then on the position says where to go on.
        self._began = False
        self._created: Timestamp | None = None
        self._keeps_one = False
        # The stream's last sequence when the read began.
        self._last_seq = 0
        self._most_idle: Duration | None = None
        self._consumer_seq = 0
        self._looked = 0
        # Where the first consumer of the stream began.
        self._before = 0
        # What the last heartbeat said, until the messages before it are handed over.
        self._sent = -1
        self._looked_then = 0
        self.position = 0
        """The stream sequence of the last message handed over; 0 before the first."""
        self.is_bounded = False
        """Whether the present consumer is good only for the snapshot."""
        self.is_outdated = False
        """Whether another consumer has to deliver what comes next."""

    @property
    def name(self) -> str:
        """The name of the present consumer, or of the one that is made next."""
        return f"{self._prefix}_{self._serial}"

    @property
    def scanned(self) -> int:
        """The stream sequence up to which every message that is wanted was handed over."""
        return max(self.position, self._looked)

    @property
    def is_current(self) -> bool:
        """Whether all messages were handed over that were stored when the read began."""
        return self._began and self.scanned >= self._last_seq

    @property
    def has_list(self) -> bool:
        """Whether the present consumer walks through a list, where it may stop (see `probing`)."""
        return self._is_snapshot and not self._keeps_one and self.scanned < self._last_seq

    @property
    def progress(self) -> tuple[int, int]:
        """How far the present consumer is: what its last heartbeat said."""
        return self._sent, self._looked_then

    # ---- consumers

    def found_stream(self, stream: StreamInfo) -> bool:
        """Note the state of the stream; tell whether it is another one than before.

        The read of another stream of the same name begins at its beginning, or with its snapshot.
        """
        another = self._created is not None and self._created != stream.created
        self._created = stream.created
        self._keeps_one = stream.config.max_msgs_per_subject == 1
        limits = stream.config.consumer_limits
        self._most_idle = limits.inactive_threshold if limits is not None else None
        if another:
            self.position = self._looked = self._before = 0
            self._began = not self._is_snapshot
        if another or not self._began:
            self._last_seq = stream.state.last_seq
        return another

    def next_config(self) -> ConsumerConfig:
        """Return the configuration of the next consumer, within the limits of its stream.

        It has the name of the one before if that was not made: it may be on the server, where it
        is taken for this one.
        """
        if self._is_made:
            self.rename()
        in_list = self.has_list
        self.is_bounded = in_list and (self._began or self._by_bytes)
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
        if not self._began or in_list:
            return config
        return evolve(
            config,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.scanned + 1,
            opt_start_time=None,
        )

    def _default_idle(self) -> Duration:
        return min(_INACTIVE, self._most_idle) if self._most_idle else _INACTIVE

    def rename(self) -> None:
        """Give the next consumer another name."""
        self._serial += 1
        self._is_made = False

    def made(self, info: ConsumerInfo) -> None:
        """Note that the consumer was made, and where it stands."""
        if not self._began and not self._is_snapshot and info.delivered is not None:
            # "new" and "last" begin after this; it replaces them from now on.
            self.position = self._before = max(self.position, info.delivered.stream_seq)
        self._began = self._is_made = True
        self.is_outdated = False
        self._consumer_seq = 0
        self._sent = -1

    # ---- going back

    def mark(self) -> Mark:
        """Return where the read stands, for `go_back`."""
        return self._created, self.position, self._looked

    def go_back(self, mark: Mark) -> None:
        """Have what was handed over since the mark delivered again, by another consumer."""
        created, position, looked = mark
        if created is not None and created != self._created:
            position = looked = 0
        self.position = max(position, self._before)
        self._looked = looked
        self.is_outdated = True

    # ---- messages and heartbeats

    def is_in_order(self, metadata: Metadata) -> bool:
        """Tell whether a message is the one that comes next; nothing is noted of it."""
        return metadata.consumer_seq == self._consumer_seq + 1

    def wants(self, metadata: Metadata) -> bool:
        """Tell whether to hand over a message in order, or to skip it; nothing is noted of it."""
        seq = metadata.stream_seq
        return seq > self.position and not (self.is_bounded and seq > self._last_seq)

    def take(self, metadata: Metadata) -> bool:
        """Note a message in order; tell whether to hand it over, or to skip it."""
        self._consumer_seq = metadata.consumer_seq
        seq = metadata.stream_seq
        is_new = seq > self.position
        if self.is_bounded and seq >= self._last_seq:
            self.is_outdated = True
            if seq > self._last_seq:
                self._looked = max(self._looked, self._last_seq)
                is_new = False
        if is_new:
            self.position = seq
        if self._sent == self._consumer_seq:
            self._look()
        return is_new

    def heard(self, heartbeat: Status, buffered: int) -> str | None:
        """Note a heartbeat; tell what is wrong if messages before it were lost.

        `buffered` messages came before it and are not handed over yet.
        """
        sent, looked = heartbeat.last_consumer, heartbeat.last_stream
        if sent is None or looked is None:
            return None
        came = self._consumer_seq + buffered
        if sent != came:
            return f"the server has sent {sent} messages with the consumer, {came} came"
        self._sent, self._looked_then = sent, looked
        if not buffered:
            self._look()
        return None

    def _look(self) -> None:
        """Note up to where the server had looked when it sent the messages so far."""
        looked = self._looked_then
        if self.is_bounded and looked >= self._last_seq:
            # At the end of its list it has looked at the last message of each subject only.
            looked = self._last_seq
            self.is_outdated = True
        self._looked = max(self._looked, looked)

    def has_all(self, sent: int) -> bool:
        """Tell whether the first `sent` messages of the consumer were handed over."""
        return self._consumer_seq >= sent
