"""Events that are only logged: no callback receives them."""

from __future__ import annotations

from twinstream.errors import AuthenticationFailed
from twinstream.models.records import frozen

__all__ = [
    "BackedUp",
    "CallbackFailed",
    "ContentLeft",
    "DeadLettered",
    "Elected",
    "LeaseWasLost",
    "MessageNotRead",
    "NoDeadLetter",
    "PullSent",
    "ReconnectFailed",
    "Restored",
    "WillRetry",
    "WorkEnded",
    "WorkerStarted",
    "WorkerStopped",
]


@frozen
class ReconnectFailed:
    """A round of reconnecting failed; `attempt` counts the rounds of this outage from 1."""

    attempt: int
    error: Exception

    @property
    def is_refusal(self) -> bool:
        """Return whether servers refused the credentials, which waiting rarely changes."""
        return isinstance(self.error, AuthenticationFailed)


@frozen
class CallbackFailed:
    """A user callback raised an error; `name` is the parameter that it was passed as."""

    name: str
    error: BaseException


@frozen
class MessageNotRead:
    """Processing a message raised an error, a bug in this package; the message was dropped."""

    subject: str
    error: BaseException


@frozen
class PullSent:
    """A pull request was sent, for up to `batch` messages and at most `max_bytes`."""

    batch: int
    max_bytes: int | None
    stream: str
    consumer: str


@frozen
class WillRetry:
    """Something failed and will be retried; `what` names it."""

    what: str
    error: BaseException
    subject: str = ""


@frozen
class WorkerStarted:
    """A worker has started to process messages."""

    concurrency: int


@frozen
class WorkerStopped:
    """A worker has ended; the totals are those of its counters."""

    handled: int
    retried: int
    rejected: int


@frozen
class WorkEnded:
    """An error ended background work before it was stopped."""

    what: str
    error: BaseException


@frozen
class DeadLettered:
    """A failed message was stored as a dead letter.

    `by_worker` means that a worker of this application rejected it and logged the error itself.
    """

    stream: str
    consumer: str
    stream_seq: int
    subject: str
    cause: str
    by_worker: bool


@frozen
class NoDeadLetter:
    """An advisory does not become a dead letter, for this reason."""

    reason: str


@frozen
class LeaseWasLost:
    """A lock, a semaphore slot or a leader's term was lost before it was released."""

    reason: str


@frozen
class Elected:
    """The candidate is the leader now; `token` is the fencing token of the term."""

    name: str
    token: int


@frozen
class BackedUp:
    """A stream was copied into a folder; `size` is in bytes."""

    stream: str
    size: int
    seconds: float


@frozen
class ContentLeft:
    """An object was stored, but the content that it replaced could not be removed."""

    name: str
    bucket: str
    nuid: str
    error: BaseException


@frozen
class Restored:
    """A stream was restored from a backup; `size` is in bytes."""

    stream: str
    size: int
    seconds: float
