"""The reports that a worker passes to its `on_report`."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.consume.reports import PullReport
from twinstream.core.log.report import ERROR, INFO, WARNING, Report
from twinstream.core.workers.retry import TryLater

__all__ = ["HandlerFailed", "WorkReport"]


@frozen
class HandlerFailed(Report):
    """Reported when a handler raised an error for a message.

    `retry_in` is the time until the next attempt in seconds, or None if there is no further
    attempt. `attempt` is the number of this attempt, counted from 1 over all deliveries.
    """

    subject: str
    """Subject of the message."""
    stream_seq: int
    """Sequence of the message in its stream."""
    attempt: int
    error: Exception
    """What the handler raised."""
    retry_in: float | None

    log_area = "worker"
    log_limit = "traceback"

    def _level(self) -> int:
        if self.retry_in is None:
            return ERROR
        return INFO if isinstance(self.error, TryLater) else WARNING

    def __str__(self) -> str:
        message = f"message {self.stream_seq} ({self.subject})"
        if self.retry_in is None:
            return f"{message} is given up after attempt {self.attempt}: {self.error!r}"
        again = f"in {self.retry_in:g} s: "
        if isinstance(self.error, TryLater):
            return f"the handler wants {message} again {again}{self.error}"
        failed = f"{message} failed at attempt {self.attempt}, the next follows"
        return f"{failed} {again}{self.error!r}"


WorkReport = PullReport | HandlerFailed
