"""Events that are only logged and not passed to a callback."""

from __future__ import annotations

from twinstream.errors import AuthenticationFailed
from twinstream.models.codec.records import frozen

__all__ = [
    "BackedUp",
    "CallbackFailed",
    "ContentKept",
    "ContentLeft",
    "DeadLettered",
    "Elected",
    "FilterOutside",
    "LeaseWasLost",
    "MarkersSkipped",
    "MessageNotRead",
    "NoDeadLetter",
    "ObjectUnreadable",
    "PullSent",
    "ReconnectFailed",
    "Restored",
    "ServerUnverified",
    "WillRetry",
    "WorkerStarted",
    "WorkerStopped",
]


@frozen
class ReconnectFailed:
    """Logged when a round of attempts to reconnect failed.

    `attempt` is the number of the round, counted from 1 since the connection was lost.
    """

    attempt: int
    error: Exception

    @property
    def is_refusal(self) -> bool:
        """Whether servers refused the credentials. Later attempts then rarely succeed."""
        return isinstance(self.error, AuthenticationFailed)


@frozen
class ServerUnverified:
    """Logged once for a connection whose `TlsOptions` do not verify the server's certificate."""

    server: str


@frozen
class CallbackFailed:
    """Logged when a callback raised an error; `name` is the parameter for this callback."""

    name: str
    error: BaseException


@frozen
class MessageNotRead:
    """Logged when a message was dropped because a bug in this package raised an error for it."""

    subject: str
    error: BaseException


@frozen
class PullSent:
    """Logged when a pull request was sent; `max_bytes` is None without a byte limit."""

    batch: int
    max_bytes: int | None
    stream: str
    consumer: str


@frozen
class FilterOutside:
    """Logged when a consumer was created with filters that match no subject of its stream."""

    stream: str
    consumer: str
    filters: str
    subjects: str


@frozen
class WillRetry:
    """Logged when the operation `what` failed and will be retried."""

    what: str
    error: BaseException
    subject: str = ""


@frozen
class WorkerStarted:
    """Logged when a worker has started to process messages."""

    concurrency: int


@frozen
class WorkerStopped:
    """Logged when a worker has ended, with the totals of its counters."""

    handled: int
    retried: int
    rejected: int


@frozen
class DeadLettered:
    """Logged when a failed message was stored as a dead letter.

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
    """Logged when no dead letter is stored for an advisory, because of `reason`."""

    reason: str


@frozen
class LeaseWasLost:
    """Logged when a lock, a semaphore slot or a leader's term was lost before its release."""

    reason: str


@frozen
class Elected:
    """Logged when a candidate became the leader; `token` is the fencing token of its term."""

    name: str
    token: int


@frozen
class BackedUp:
    """Logged when a stream was copied to a folder; `size` is in bytes."""

    stream: str
    size: int
    seconds: float


@frozen
class ContentKept:
    """Logged when an object was replaced or deleted, and its previous content was not removed."""

    name: str
    bucket: str
    nuid: str
    reason: str


@frozen
class ContentLeft:
    """Logged when an object was stored, but its previous content could not be removed."""

    name: str
    bucket: str
    nuid: str
    error: BaseException


@frozen
class ObjectUnreadable:
    """Logged when a list or a watch returned an object whose metadata cannot be read."""

    name: str
    bucket: str
    seq: int
    error: str


@frozen
class MarkersSkipped:
    """Logged when markers of a bucket were not removed, because their keys are no valid ones."""

    bucket: str
    count: int


@frozen
class Restored:
    """Logged when a stream was restored from a backup; `size` is in bytes."""

    stream: str
    size: int
    seconds: float
