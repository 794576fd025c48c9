"""The reports of a member of a consumer group about its partitions."""

from __future__ import annotations

from twinstream.core.consume.reports import WorkReport
from twinstream.models.codec.records import frozen

__all__ = ["CopiesSkipped", "GroupReport", "JoinDelayed", "PartitionsAssigned", "PartitionsRevoked"]


@frozen
class PartitionsAssigned:
    """Reported when the instance consumes these partitions, or is on standby for them.

    If the server pins this instance, a `Pinned` report follows with the first message.
    """

    stream: str
    group: str
    member: str
    partitions: tuple[int, ...]


@frozen
class PartitionsRevoked:
    """Reported when the instance no longer consumes these partitions, because of `reason`.

    Its running handlers have ended. For partitions that the member keeps, a `PartitionsAssigned`
    follows.
    """

    stream: str
    group: str
    member: str
    partitions: tuple[int, ...]
    reason: str


@frozen
class JoinDelayed:
    """Reported when the member's consumer could not be created.

    The next attempt follows in `retry_in` seconds. `is_usual` is true if the delay is expected,
    because the members are changing and another member still has some of the partitions.
    """

    stream: str
    group: str
    member: str
    error: Exception
    retry_in: float
    is_usual: bool


@frozen
class CopiesSkipped:
    """Reported when messages were acknowledged without handling: the group has processed them.

    The server had copied these `count` messages into the stream of the group again.
    """

    stream: str
    group: str
    member: str
    count: int


GroupReport = WorkReport | PartitionsAssigned | PartitionsRevoked | JoinDelayed | CopiesSkipped
"""The reports that a `GroupWorker` passes to its `on_report`."""
