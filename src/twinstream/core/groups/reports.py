"""The reports of a member of a consumer group about its partitions."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.log.report import DEBUG, INFO, WARNING, Report
from twinstream.core.workers.reports import WorkReport

__all__ = ["CopiesSkipped", "GroupReport", "JoinDelayed", "PartitionsAssigned", "PartitionsRevoked"]


@frozen
class PartitionsAssigned(Report):
    """Reported when the instance consumes these partitions, or is on standby for them.

    If the server pins this instance, a `Pinned` report follows with the first message.
    """

    stream_name: str
    """Name of the group's stream."""
    group: str
    """Name of the group."""
    member: str
    """Name of the member."""
    partitions: tuple[int, ...]
    """Numbers of the partitions."""

    log_area = "groups"
    log_level = INFO

    def __str__(self) -> str:
        member = f"member {self.member} of consumer group {self.group}"
        return f"{member} consumes partitions {self.partitions}"


@frozen
class PartitionsRevoked(Report):
    """Reported when the instance no longer consumes these partitions, because of `reason`.

    Its running handlers have ended. For partitions that the member keeps, a `PartitionsAssigned`
    follows.
    """

    stream_name: str
    """Name of the group's stream."""
    group: str
    """Name of the group."""
    member: str
    """Name of the member."""
    partitions: tuple[int, ...]
    """Numbers of the partitions."""
    reason: str

    log_area = "groups"
    log_level = INFO

    def __str__(self) -> str:
        member = f"member {self.member} of consumer group {self.group}"
        return f"{member} left partitions {self.partitions}: {self.reason}"


@frozen
class JoinDelayed(Report):
    """Reported when the member's consumer could not be created.

    The next attempt follows in `retry_in` seconds. `is_usual` is true if the delay is expected,
    because the members are changing and another member still has some of the partitions.
    """

    stream_name: str
    """Name of the group's stream."""
    group: str
    """Name of the group."""
    member: str
    """Name of the member."""
    error: Exception
    """Why the consumer was not created."""
    retry_in: float
    is_usual: bool

    log_area = "groups"
    log_limit = "record"

    def _level(self) -> int:
        return DEBUG if self.is_usual else WARNING

    def __str__(self) -> str:
        what = "waits for" if self.is_usual else "could not create"
        member = f"member {self.member} of consumer group {self.group}"
        return f"{member} {what} its consumer, next try in {self.retry_in:g} s: {self.error}"


@frozen
class CopiesSkipped(Report):
    """Reported when messages were acknowledged without handling: the group has processed them.

    The server had copied these `count` messages into the stream of the group again.
    """

    stream_name: str
    """Name of the group's stream."""
    group: str
    """Name of the group."""
    member: str
    """Name of the member."""
    count: int

    log_area = "groups"
    log_level = WARNING

    def __str__(self) -> str:
        return (
            f"member {self.member} of consumer group {self.group} acknowledged {self.count}"
            " messages without handling: the server had copied them again"
        )


GroupReport = WorkReport | PartitionsAssigned | PartitionsRevoked | JoinDelayed | CopiesSkipped
"""The reports that a `GroupWorker` passes to its `on_report`."""
