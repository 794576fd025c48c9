"""Reports of an iteration over messages."""

from __future__ import annotations

from twinstream.core.wire.status import Status
from twinstream.models.records import frozen

__all__ = [
    "HandlerFailed",
    "Pinned",
    "PullReport",
    "PullWarning",
    "Recreated",
    "Unpinned",
    "WorkReport",
]


@frozen
class PullWarning:
    """A problem from which the iteration is recovering; `status` is the server's status, if any.

    `again` is true if the same problem was reported before and there was no progress since.
    Iterations do not pass such a warning on.
    """

    text: str
    status: Status | None = None
    again: bool = False


@frozen
class Pinned:
    """The client is now the pinned one of its priority group."""

    group: str
    pin: str


@frozen
class Unpinned:
    """Another client was pinned; this one is on standby."""

    group: str


@frozen
class Recreated:
    """The consumer did not exist any more and was re-created."""

    name: str


PullReport = PullWarning | Pinned | Unpinned | Recreated


@frozen
class HandlerFailed:
    """A handler failed for a message.

    `retry_in` is in seconds, or None if there is no further attempt. `attempt` counts from 1, over
    all deliveries.
    """

    subject: str
    stream_seq: int
    attempt: int
    error: Exception
    retry_in: float | None


WorkReport = PullReport | HandlerFailed
