"""Events that are only logged and not passed to a callback."""

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
    """The event that a round of attempts to reconnect failed.

    `attempt` is the number of the round, counted from 1 since the connection was lost.
    """

    attempt: int
    error: Exception

    @property
    def is_refusal(self) -> bool:
        """Whether servers refused the credentials. Later attempts then rarely succeed."""
        return isinstance(self.error, AuthenticationFailed)


@frozen
class CallbackFailed:
    """The event that a callback raised an error; `name` is the parameter for this callback."""

    name: str
    error: BaseException


@frozen
class MessageNotRead:
    """The event that a bug in this package raised an error for a message, which was dropped."""

    subject: str
    error: BaseException


@frozen
class PullSent:
    """The event that a pull request for `batch` messages and `max_bytes` was sent."""

    batch: int
    max_bytes: int | None
    stream: str
    consumer: str


@frozen
class WillRetry:
    """The event that the operation `what` failed and will be retried."""

    what: str
    error: BaseException
    subject: str = ""


@frozen
class WorkerStarted:
    """The event that a worker has started to process messages."""

    concurrency: int


@frozen
class WorkerStopped:
    """The event that a worker has ended, with the totals of its counters."""

    handled: int
    retried: int
    rejected: int


@frozen
class WorkEnded:
    """The event that an error ended the background work `what` before it was stopped."""

    what: str
    error: BaseException


@frozen
class DeadLettered:
    """The event that a failed message was stored as a dead letter.

    `by_worker` is true if a worker of this application rejected the message and logged the error
    itself.
    """

    stream: str
    consumer: str
    stream_seq: int
    subject: str
    cause: str
    by_worker: bool


@frozen
class NoDeadLetter:
    """The event that no dead letter is stored for an advisory, because of `reason`."""

    reason: str


@frozen
class LeaseWasLost:
    """The event that a lock, a semaphore slot or a leader's term was lost before its release."""

    reason: str


@frozen
class Elected:
    """The event that a candidate became the leader; `token` is the fencing token of its term."""

    name: str
    token: int


@frozen
class BackedUp:
    """The event that a stream was copied to a folder; `size` is in bytes."""

    stream: str
    size: int
    seconds: float


@frozen
class ContentLeft:
    """The event that an object was stored, but its previous content could not be removed."""

    name: str
    bucket: str
    nuid: str
    error: BaseException


@frozen
class Restored:
    """The event that a stream was restored from a backup; `size` is in bytes."""

    stream: str
    size: int
    seconds: float
