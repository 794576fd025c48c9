"""The reports that an iteration over messages passes to its `on_report`."""

from __future__ import annotations

from twinstream.core.wire.status import Status
from twinstream.models.codec.records import frozen

__all__ = [
    "HandlerFailed",
    "Pinned",
    "PullReport",
    "PullWarning",
    "Recreated",
    "Unpinned",
    "WorkEnded",
    "WorkReport",
]


@frozen
class PullWarning:
    """A problem from which the iteration is recovering; `status` is the server's status, if any.

    `again` is true if the same problem was reported before and there was no progress since. An
    iteration does not pass such a warning to `on_report`.
    """

    text: str
    status: Status | None = None
    again: bool = False


@frozen
class Pinned:
    """Reported when this client became the pinned client of its priority group."""

    group: str
    pin: str


@frozen
class Unpinned:
    """Reported when another client was pinned, so that this client is on standby."""

    group: str


@frozen
class Recreated:
    """Reported when the consumer no longer existed and was re-created."""

    name: str


@frozen
class WorkEnded:
    """Reported when an error ended the background work `what`, which then handles no more messages.

    The call that ends the work, or waits for its end, raises the error as well. An iteration over
    messages raises its errors, and does not report its end.
    """

    what: str
    error: BaseException


PullReport = PullWarning | Pinned | Unpinned | Recreated | WorkEnded


@frozen
class HandlerFailed:
    """Reported when a handler raised an error for a message.

    `retry_in` is the time until the next attempt in seconds, or None if there is no further
    attempt. `attempt` is the number of this attempt, counted from 1 over all deliveries.
    """

    subject: str
    stream_seq: int
    attempt: int
    error: Exception
    retry_in: float | None


WorkReport = PullReport | HandlerFailed
