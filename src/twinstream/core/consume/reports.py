"""What an iteration over messages reports besides the messages."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.wire.status import Status

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
    """Something went wrong and is being mended; `status` is the server's word for it, if any.

    `again` says that it was reported before and nothing went well since; iterations do not pass
    such a warning on.
    """

    text: str
    status: Status | None = None
    again: bool = False


@frozen
class Pinned:
    """The client is the pinned one of its priority group now."""

    group: str
    pin: str


@frozen
class Unpinned:
    """Another client was pinned; this one stands by."""

    group: str


@frozen
class Recreated:
    """The consumer was gone and was made anew."""

    name: str


PullReport = PullWarning | Pinned | Unpinned | Recreated


@frozen
class HandlerFailed:
    """A handler failed at a message; `retry_in` is in seconds, None when the message is given up.

    `attempt` counts from 1, over all deliveries.
    """

    subject: str
    stream_seq: int
    attempt: int
    error: Exception
    retry_in: float | None


WorkReport = PullReport | HandlerFailed
