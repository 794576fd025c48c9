"""Reports of a member of a consumer group: which partitions it gained and lost, and why."""

from __future__ import annotations

from twinstream.core.consume.reports import WorkReport
from twinstream.models.records import frozen

__all__ = ["GroupReport", "JoinDelayed", "PartitionsAssigned", "PartitionsRevoked"]


@frozen
class PartitionsAssigned:
    """The member consumes these partitions from now on, or stands by for them.

    A `Pinned` report follows with the first message if the server pins this instance.
    """

    stream: str
    group: str
    member: str
    partitions: tuple[int, ...]


@frozen
class PartitionsRevoked:
    """The instance does not consume these partitions any more; `reason` says why.

    Its running handlers have ended. Partitions that the member keeps are reported again by
    `PartitionsAssigned`.
    """

    stream: str
    group: str
    member: str
    partitions: tuple[int, ...]
    reason: str


@frozen
class JoinDelayed:
    """The member's consumer could not be created; the next attempt follows in `retry_in` seconds.

    This is expected while the members change (`is_usual`): another member still has some of the
    partitions.
    """

    stream: str
    group: str
    member: str
    error: Exception
    retry_in: float
    is_usual: bool


GroupReport = WorkReport | PartitionsAssigned | PartitionsRevoked | JoinDelayed
"""What `on_report` of a `GroupWorker` receives."""
