"""The events that a running pipeline reports."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from twinstream.core.log.report import ERROR, INFO, WARNING, Report
from twinstream.lake.entry import BatchEntry

__all__ = ["Ended", "Failed", "Happening", "Landed", "Released", "Started"]


@frozen
class Started(Report):
    """Reported when a source was started. It continues at sequence `position` of the stream."""

    source: str
    position: int
    backlog: int
    """The number of sequences of the stream that are not landed yet."""

    log_area = "pipeline"
    log_level = INFO

    def __str__(self) -> str:
        return (
            f"source {self.source} continues at sequence {self.position},"
            f" {self.backlog} sequences are pending"
        )


@frozen
class Landed(Report):
    """Reported when a batch was landed in its tables."""

    source: str
    entry: BatchEntry

    log_area = "pipeline"

    def _level(self) -> int:
        return WARNING if self.entry.dead_letters else INFO

    def __str__(self) -> str:
        entry = self.entry
        letters = f" ({entry.dead_letters} dead letters)" if entry.dead_letters else ""
        return (
            f"source {self.source}: batch {entry.batch} landed {entry.messages} messages{letters}"
            f" in {entry.seconds:.1f} s, {entry.backlog} sequences are pending"
        )


@frozen
class Released(Report):
    """Reported when the messages below sequence `end` were released.

    `mode` is the source's setting `commit`. `removed` is the number of messages that a purge
    removed from the stream; it is 0 for a bookmark.
    """

    source: str
    mode: str
    end: int
    removed: int

    log_area = "pipeline"
    log_level = INFO

    def __str__(self) -> str:
        return (
            f"source {self.source}: released all below sequence {self.end} ({self.mode}),"
            f" {self.removed} messages removed"
        )


@frozen
class Failed(Report):
    """Reported when a source failed.

    The source restarts in `retry_in` seconds, or never if `retry_in` is `None`.
    """

    source: str
    error: str
    retry_in: float | None
    kind: str
    """The name of the error's class."""
    err_code: int | None = None
    """The server's error code if the server refused a request, otherwise `None`."""

    log_area = "pipeline"

    def _level(self) -> int:
        return ERROR if self.retry_in is None else WARNING

    def __str__(self) -> str:
        if self.retry_in is None:
            return f"source {self.source} has ended: {self.error}"
        return f"source {self.source} failed and restarts in {self.retry_in:g} s: {self.error}"


@frozen
class Ended(Report):
    """Reported when a source ended without an error.

    Either all messages are landed, or a stop was requested.
    """

    source: str

    log_area = "pipeline"
    log_level = INFO

    def __str__(self) -> str:
        return f"source {self.source} has ended"


Happening: TypeAlias = Started | Landed | Released | Failed | Ended
