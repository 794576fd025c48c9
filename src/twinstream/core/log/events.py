"""Events that exist for the log alone: no callback receives them."""

from __future__ import annotations

from attrs import frozen

from twinstream.errors import AuthenticationFailed

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
    """One round of reconnecting failed; `attempt` counts the rounds of this outage from 1."""

    attempt: int
    error: Exception

    @property
    def is_refusal(self) -> bool:
        """Tell whether servers refused the credentials, which waiting rarely changes."""
        return isinstance(self.error, AuthenticationFailed)


@frozen
class CallbackFailed:
    """A callback of the program raised an error; `name` is the parameter that it was given as."""

    name: str
    error: BaseException


@frozen
class MessageNotRead:
    """Reading a message raised an error, a fault of this package; the message was dropped."""

    subject: str
    error: BaseException


@frozen
class PullSent:
    """A pull request was sent: up to `batch` messages, `max_bytes` at most."""

    batch: int
    max_bytes: int | None
    stream: str
    consumer: str


@frozen
class WillRetry:
    """Something failed and is tried again; `what` names it."""

    what: str
    error: BaseException
    subject: str = ""


@frozen
class WorkerStarted:
    """A worker takes messages from now on."""

    concurrency: int


@frozen
class WorkerStopped:
    """A worker has ended; the totals are those of its counters."""

    handled: int
    retried: int
    rejected: int


@frozen
class WorkEnded:
    """An error ended work in the background, before the program stopped it."""

    what: str
    error: BaseException


@frozen
class DeadLettered:
    """A message was given up and is stored as a dead letter under `letter`.

    `by_worker` says that a worker of this program rejected it, which logged the error itself.
    """

    stream: str
    consumer: str
    stream_seq: int
    subject: str
    cause: str
    by_worker: bool


@frozen
class NoDeadLetter:
    """An advisory makes no dead letter, for this reason."""

    reason: str


@frozen
class LeaseWasLost:
    """A lock, a place of a semaphore or a leader's term was lost before it was released."""

    reason: str


@frozen
class Elected:
    """The candidate leads from now on; `token` is the fencing token of the term."""

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
