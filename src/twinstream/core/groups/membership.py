"""The state machine of an instance of a member, which decides when to join and leave.

Theory of operation
-------------------
Each process that works as a member runs one instance. The instance watches the configuration of the
group, and computes from it the filters of the member's consumer. Its owner reports events to a
`Membership` and carries out the `Step` that it returns:

* If the filters change (elastic groups), the steps are `Leave`, then `Join`. The consumer is
  deleted and created again. Its filters are not edited, because its position may be beyond messages
  of a newly assigned partition. Only the pinned instance deletes it (`deletes_consumer`), after its
  handlers have ended. The other instances wait for `PAUSE` seconds, so that the pinned instance
  deletes it first. A member whose filters stay the same continues.
* `Join` creates the consumer. The server refuses the consumer (10100) while another member still
  has one of the partitions. A consumer with older filters is not replaced while another instance is
  pinned to it. In both cases the join is retried, after at most `_LONGEST_RETRY` s.
* If the consumer was deleted (by an instance of the member, or by the server because it was
  inactive), the owner reads the configuration again. An elastic member joins again after `DELETION`
  seconds. A static member ends with an error, because its consumer was durable and the
  acknowledgement state is lost.
* If the key of the configuration was deleted, purged or has expired, the step is `End` without an
  error. If a setting changed that running workers cannot apply, or if the value is invalid, it is
  `End` with an error.

Source: orbit.go `pcgroups` (elastic_stream_consumer_group.go, static_stream_consumer_group.go).
orbit.go differs: it re-creates the consumer at each change of the members, waits ack_wait + 0.5 s
after each refusal, and lets an unpinned instance delete a consumer with other settings.
"""

from __future__ import annotations

import math
from typing import Final

from attrs import frozen

from twinstream.core.deadline import Backoff, Failures
from twinstream.core.groups.config import differences
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import GroupConfig, filters_of, partitions_of
from twinstream.core.server_faults.delays import DELETION
from twinstream.errors import GroupChanged, InvalidGroupConfig

__all__ = [
    "PAUSE",
    "End",
    "Found",
    "Join",
    "Leave",
    "Membership",
    "Step",
    "Wait",
    "deletes_consumer",
    "is_free",
]

PAUSE: Final = 0.45
"""Seconds that an instance without the pin waits before it joins again."""

_FIRST_RETRY: Final = 0.05
# The partitions of a killed member become free at any time from ack_wait on. So the interval does
# not grow with ack_wait: the time in which no member has the partitions would be twice as long.
_LONGEST_RETRY: Final = 1.0

Found = GroupConfig | InvalidGroupConfig | None
"""The value of the key: a configuration, the error of an invalid one, or None without a value."""


@frozen
class Join:
    """The step to create the consumer with these filters, and to consume."""

    filters: tuple[str, ...]
    partitions: tuple[int, ...]


@frozen
class Leave:
    """The step to stop consuming and report that with `left`, and then to call `due`."""

    reason: str


@frozen
class Wait:
    """The step to wait until this time, or until the next event."""

    until: float


@frozen
class End:
    """The last step: end the instance, with `error` if it is not None."""

    reason: str
    error: Exception | None = None


Step = Join | Leave | Wait | End


class Membership:
    """The state of one instance. Times are in seconds of the monotonic clock."""

    def __init__(self, names: GroupNames, member: str, config: GroupConfig) -> None:
        self._names: Final = names
        self._member: Final = member
        self._refusals: Final = Failures(Backoff(_FIRST_RETRY, _LONGEST_RETRY))
        self._join_at = 0.0
        self.config = config
        """The last reported configuration."""
        self.filters: tuple[str, ...] = ()
        """The filters of the current consumer; empty without a consumer."""
        self.partitions: tuple[int, ...] = ()
        """The partitions of the current consumer."""

    def heard(self, found: Found, now: float) -> Step:
        """Process the current value of the key; return the next step."""
        if found is None:
            return End(f"{self._names} was deleted")
        if isinstance(found, InvalidGroupConfig):
            return End("the configuration is invalid", found)
        changed = differences(self.config, found)
        if changed:
            error = GroupChanged(
                f"{self._names}: {', '.join(changed)} changed, which running workers cannot"
                " apply: restart them"
            )
            return End(f"{', '.join(changed)} changed", error)
        self.config = found
        if self.filters and self.filters != filters_of(found, self._member):
            return Leave("the members changed")
        return self.due(now)

    def due(self, now: float) -> Step:
        """Return the step that is due at `now`."""
        wanted = filters_of(self.config, self._member)
        if self.filters or not wanted:
            return Wait(math.inf)
        if now < self._join_at:
            return Wait(self._join_at)
        return Join(wanted, partitions_of(self.config, self._member))

    def joined(self, join: Join) -> None:
        """Record that the consumer was created, and that the instance consumes it."""
        self.filters, self.partitions = join.filters, join.partitions
        self._refusals.clear()
        self._join_at = 0.0

    def left(self, now: float, pause: float = 0.0) -> None:
        """Record that the instance no longer consumes the consumer.

        The instance joins again after `pause` seconds at the earliest.
        """
        self.filters = self.partitions = ()
        self._join_at = now + pause

    def refused(self, now: float) -> float:
        """Record that the consumer could not be created; return the seconds until the retry."""
        pause = self._refusals.add()
        self._join_at = now + pause
        return pause

    def gone(self, found: Found, error: Exception, now: float) -> Step:
        """Record that the consumer was deleted; return the next step.

        `found` is the current value of the key. `error` is the error of the pull.
        """
        self.left(now, DELETION)
        step = self.heard(found, now)
        if self._names.kind == "static" and not isinstance(step, End):
            return End("the consumer was deleted", error)
        return step


def deletes_consumer(
    holder: str, mine: str | None, stored: tuple[str, ...], wanted: tuple[str, ...]
) -> bool:
    """Return whether an instance that leaves deletes the member's consumer.

    Only the pinned instance deletes it. If no instance is pinned, for example because no message
    has arrived, any instance deletes it. The consumer is kept if another instance has already
    re-created it with the current filters.

    Args:
        holder: The id of the current pin, empty if no instance is pinned.
        mine: The id of this instance's pin, None without a pin.
        stored: The filters of the consumer on the server.
        wanted: The filters of the member according to the current configuration.
    """
    if holder and holder != mine:
        return False
    return stored != wanted


def is_free(holder: str, waiting: int, stored: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return whether an instance that joins may replace a consumer whose settings differ.

    It must not replace the consumer while an instance is pinned. It must not replace a consumer
    with the same filters while another instance waits for messages, because both instances would
    replace each other's consumer again and again.

    Args:
        holder: The id of the current pin, empty if no instance is pinned.
        waiting: The number of waiting pulls.
        stored: The filters of the consumer on the server.
        wanted: The filters of the member according to the current configuration.
    """
    return not holder and (not waiting or stored != wanted)
