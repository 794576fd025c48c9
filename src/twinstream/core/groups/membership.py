"""What an instance of a member does next: the membership loop as a state machine without I/O.

Theory of operation
-------------------
Each process that works as a member runs one instance. It watches the configuration of the group,
and computes from it the filters of the member's consumer. Its owner reports facts and carries out
the `Step` that each of them leads to:

* The filters changed (elastic groups): `Leave`, then `Join`. A consumer's filters are not edited:
  it may be past messages of a partition that it gains, so it is deleted and created again. Only
  the pinned instance deletes it (`deletes_consumer`), after its handlers have ended. The others
  wait for `PAUSE`, so that it comes first. A member whose filters stay the same is not disturbed.
* `Join` creates the consumer. While another member still has one of the partitions the server
  refuses that (10100). While another instance of the member is pinned to a consumer with older
  filters, that one is left to it. Both are tried again, at the latest after ack_wait + 0.5 s.
* The consumer is gone: an instance of the member deleted it, or it was inactive. The owner reads
  the configuration again. An elastic member joins again, after `DELETION`. For a static one it is
  the end: its consumer is durable, and what it had acknowledged is forgotten.
* The key is deleted, purged or expired: `End`, normally. A setting that members cannot follow
  changed, or the value is invalid: `End` with an error.

Source: orbit.go `pcgroups` (elastic_stream_consumer_group.go, static_stream_consumer_group.go).
Differences: it re-creates the consumer at each change of the members, it waits ack_wait + 0.5 s
after each refusal, and an unpinned instance deletes a consumer with other settings.
"""

from __future__ import annotations

import math
from typing import Final

from twinstream.core.groups.config import differences
from twinstream.core.groups.errors import BadGroupConfig, GroupChanged
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import GroupConfig, filters_of, partitions_of
from twinstream.models.records import frozen

__all__ = [
    "DELETION",
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
"""Seconds that an instance which is not pinned waits before it joins again."""

DELETION: Final = 0.3
"""Seconds after which a consumer whose deletion was reported is completely removed.

The server notifies waiting pulls first. A consumer of the same name that is created before may
continue with the delivery state of the old one (server 2.15.1).
"""

_REPAIR: Final = 0.5
_FIRST_RETRY: Final = 0.05

Found = GroupConfig | BadGroupConfig | None
"""What the key holds: a configuration, something else, or nothing (any more)."""


@frozen
class Join:
    """Create the consumer with these filters, and consume."""

    filters: tuple[str, ...]
    partitions: tuple[int, ...]


@frozen
class Leave:
    """Stop to consume; then ask `Membership.due`."""

    reason: str


@frozen
class Wait:
    """Nothing to do until this time, unless there is another fact."""

    until: float


@frozen
class End:
    """Stop for good, with this error if there is one."""

    reason: str
    error: Exception | None = None


Step = Join | Leave | Wait | End


class Membership:
    """The state of one instance. Times are those of the monotonic clock, in seconds."""

    def __init__(
        self, names: GroupNames, member: str, config: GroupConfig, ack_wait: float
    ) -> None:
        self._names: Final = names
        self._member: Final = member
        self._longest: Final = ack_wait + _REPAIR
        self._retry = _FIRST_RETRY
        self._join_at = 0.0
        self.config = config
        """The configuration that was heard last."""
        self.filters: tuple[str, ...] = ()
        """The filters of the consumer that is consumed; none while there is none."""
        self.partitions: tuple[int, ...] = ()
        """The partitions that are consumed."""

    def heard(self, found: Found, now: float) -> Step:
        """Judge what the key holds now."""
        if found is None:
            return End(f"{self._names} was deleted")
        if isinstance(found, BadGroupConfig):
            return End("the configuration is invalid", found)
        changed = differences(self.config, found)
        if changed:
            error = GroupChanged(
                f"{self._names}: {', '.join(changed)} changed, which members cannot follow: start"
                " them again"
            )
            return End(f"{', '.join(changed)} changed", error)
        self.config = found
        if self.filters and self.filters != filters_of(found, self._member):
            return Leave("the members changed")
        return self.due(now)

    def due(self, now: float) -> Step:
        """Return what is to be done at a time, without a new fact."""
        wanted = filters_of(self.config, self._member)
        if self.filters or not wanted:
            return Wait(math.inf)
        if now < self._join_at:
            return Wait(self._join_at)
        return Join(wanted, partitions_of(self.config, self._member))

    def joined(self, join: Join) -> None:
        """Record that the consumer was created and is consumed."""
        self.filters, self.partitions = join.filters, join.partitions
        self._retry = _FIRST_RETRY
        self._join_at = 0.0

    def left(self, now: float, pause: float = 0.0) -> None:
        """Record that the consumer is not consumed any more.

        It is created again after `pause` seconds at the earliest.
        """
        self.filters = self.partitions = ()
        self._join_at = now + pause

    def refused(self, now: float) -> float:
        """Record that the consumer could not be created; return the seconds until the next try."""
        pause, self._retry = self._retry, min(self._retry * 2, self._longest)
        self._join_at = now + pause
        return pause

    def gone(self, found: Found, error: Exception, now: float) -> Step:
        """Judge the end of the consumer, which was deleted: `found` is what the key holds now."""
        self.left(now, DELETION)
        step = self.heard(found, now)
        if self._names.kind == "static" and not isinstance(step, End):
            return End("the consumer was deleted", error)
        return step


def deletes_consumer(
    holder: str, mine: str | None, stored: tuple[str, ...], wanted: tuple[str, ...]
) -> bool:
    """Return whether an instance that leaves deletes the member's consumer.

    The pinned one does, and any if none is pinned, as without messages none is. Not if another
    instance has already created it with the filters that are wanted now.

    Args:
        holder: The pin of the instance that is served, empty if there is none.
        mine: The pin of this instance.
        stored: The filters of the consumer.
        wanted: The filters of the member by the current configuration.
    """
    if holder and holder != mine:
        return False
    return stored != wanted


def is_free(holder: str, waiting: int, stored: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return whether an instance that joins may replace a consumer with other settings.

    Not while an instance is pinned, nor while one with the same filters waits for messages: each
    would replace the consumer of the other, for ever.

    Args:
        holder: The pin of the instance that is served, empty if there is none.
        waiting: The number of pulls that wait.
        stored: The filters of the consumer.
        wanted: The filters of the member by the current configuration.
    """
    return not holder and (not waiting or stored != wanted)
