"""The reports that an iteration over messages passes to its `on_report`."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.log.report import DEBUG, ERROR, INFO, WARNING, Report
from twinstream.core.wire.status import Status

__all__ = [
    "ConsumerRecreated",
    "Pinned",
    "PullReport",
    "PullWarning",
    "Unpinned",
    "WorkEnded",
]


@frozen
class PullWarning(Report):
    """A problem from which the iteration is recovering; `status` is the server's status, if any.

    `again` is true if the same problem was reported before and there was no progress since. An
    iteration does not pass such a warning to `on_report`.
    """

    text: str
    """What happened, in words."""
    status: Status | None = None
    again: bool = False

    log_area = "consumer"
    log_limit = "record"

    def _level(self) -> int:
        return DEBUG if self.again else WARNING

    def __str__(self) -> str:
        return self.text


@frozen
class Pinned(Report):
    """Reported when this client became the pinned client of its priority group."""

    group: str
    """Name of the priority group."""
    pin: str
    """Id of the pin, which the server chose."""

    log_area = "consumer"
    log_level = INFO

    def __str__(self) -> str:
        return f"this client is pinned in priority group {self.group}"


@frozen
class Unpinned(Report):
    """Reported when another client was pinned, so that this client is on standby."""

    group: str
    """Name of the priority group."""

    log_area = "consumer"
    log_level = INFO

    def __str__(self) -> str:
        return f"another client is pinned in priority group {self.group}"


@frozen
class ConsumerRecreated(Report):
    """Reported when the consumer no longer existed and was re-created."""

    name: str
    """Name of the consumer."""

    log_area = "consumer"
    log_level = WARNING

    def __str__(self) -> str:
        return f"{self.name} was gone and was created again"


@frozen
class WorkEnded(Report):
    """Reported when an error ended the background work `what`, which then handles no more messages.

    The call that ends the work, or waits for its end, raises the error as well. An iteration over
    messages raises its errors, and does not report its end.
    """

    what: str
    error: BaseException
    """The error that ended the work."""

    log_area = "worker"
    log_level = ERROR

    def __str__(self) -> str:
        return f"{self.what} was ended by an error: {self.error!r}"


PullReport = PullWarning | Pinned | Unpinned | ConsumerRecreated | WorkEnded
