"""Events that are only logged and not passed to a callback."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.log.report import DEBUG, ERROR, INFO, WARNING, Report
from twinstream.errors import AuthenticationFailed

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
    "OutageLasts",
    "PullSent",
    "ReconnectFailed",
    "Restored",
    "ServerUnverified",
    "WillRetry",
    "WorkerStarted",
    "WorkerStopped",
]


@frozen
class ReconnectFailed(Report):
    """Logged when a round of attempts to reconnect failed.

    `attempt` is the number of the round, counted from 1 since the connection was lost.
    """

    attempt: int
    error: Exception

    log_area = "connection"
    log_limit = "record"

    @property
    def is_refusal(self) -> bool:
        """Whether servers refused the credentials. Later attempts then rarely succeed."""
        return isinstance(self.error, AuthenticationFailed)

    def _level(self) -> int:
        return WARNING if self.is_refusal else DEBUG

    def _kind(self) -> str:
        return "refused"

    def __str__(self) -> str:
        how = "was refused" if self.is_refusal else "failed"
        return f"reconnect attempt {self.attempt} {how}: {self.error}"


@frozen
class OutageLasts(Report):
    """Logged while the client tries to reconnect: after 1 and 5 minutes, then every 30 minutes.

    `outage` is the number of seconds without a connection, `rounds` that of the failed rounds.
    """

    outage: float
    rounds: int
    error: Exception

    log_area = "connection"
    log_level = WARNING

    def __str__(self) -> str:
        since = f"{self.outage:.0f} s, {self.rounds} rounds failed"
        return f"not connected for {since}, the client keeps trying: {self.error}"


@frozen
class ServerUnverified(Report):
    """Logged once for a connection whose `TlsOptions` do not verify the server's certificate."""

    server: str

    log_area = "connection"
    log_level = WARNING

    def __str__(self) -> str:
        return (
            f"the certificate of {self.server} is not verified (verify=False),"
            " so any server is trusted"
        )


@frozen
class CallbackFailed(Report):
    """Logged when a callback raised an error; `name` is the parameter for this callback."""

    name: str
    error: BaseException

    log_area = "connection"
    log_level = ERROR
    log_limit = "record"

    def __str__(self) -> str:
        return f"{self.name} raised {self.error!r}"


@frozen
class MessageNotRead(Report):
    """Logged when a message was dropped because a bug in this package raised an error for it."""

    subject: str
    error: BaseException

    log_area = "connection"
    log_level = ERROR
    log_limit = "record"

    def __str__(self) -> str:
        return f"a message to {self.subject} was dropped, as reading it raised {self.error!r}"


@frozen
class PullSent(Report):
    """Logged when a pull request was sent; `max_bytes` is None without a byte limit."""

    batch: int
    max_bytes: int | None
    stream: str
    consumer: str

    log_area = "consumer"
    log_level = DEBUG

    def __str__(self) -> str:
        return f"pull of {self.batch} messages, max_bytes: {self.max_bytes}"


@frozen
class FilterOutside(Report):
    """Logged when a consumer was created with filters that match no subject of its stream."""

    stream: str
    consumer: str
    filters: str
    subjects: str

    log_area = "consumer"
    log_level = WARNING

    def __str__(self) -> str:
        return (
            f"the stream captures nothing on {self.filters}, so no new message matches: compare the"
            f" consumer's filters with the stream's subjects {self.subjects}"
        )


@frozen
class WillRetry(Report):
    """Logged when the operation `what` failed and will be retried."""

    what: str
    error: BaseException
    subject: str = ""

    log_area = "publisher"
    log_level = WARNING
    log_limit = "record"

    def __str__(self) -> str:
        return f"{self.what}: {self.error}; trying again"


@frozen
class WorkerStarted(Report):
    """Logged when a worker has started to process messages."""

    concurrency: int

    log_area = "worker"
    log_level = INFO

    def __str__(self) -> str:
        return f"the worker started, concurrency: {self.concurrency}"


@frozen
class WorkerStopped(Report):
    """Logged when a worker has ended, with the totals of its counters."""

    handled: int
    retried: int
    rejected: int

    log_area = "worker"
    log_level = INFO

    def __str__(self) -> str:
        return (
            f"the worker stopped, handled: {self.handled}, retried: {self.retried},"
            f" given up: {self.rejected}"
        )


@frozen
class DeadLettered(Report):
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

    log_area = "dead_letters"

    def _level(self) -> int:
        return INFO if self.by_worker else WARNING

    def __str__(self) -> str:
        why = "rejected" if self.by_worker else f"given up ({self.cause})"
        message = f"message {self.stream_seq} ({self.subject})"
        return f"{message} was {why} and is stored as a dead letter"


@frozen
class NoDeadLetter(Report):
    """Logged when no dead letter is stored for an advisory, because of `reason`."""

    reason: str

    log_area = "dead_letters"
    log_level = INFO

    def __str__(self) -> str:
        return f"no dead letter for an advisory: {self.reason}"


@frozen
class LeaseWasLost(Report):
    """Logged when a lock, a semaphore slot or a leader's term was lost before its release."""

    reason: str

    log_area = "coordination"
    log_level = WARNING

    def __str__(self) -> str:
        return f"lost: {self.reason}"


@frozen
class Elected(Report):
    """Logged when a candidate became the leader; `token` is the fencing token of its term."""

    name: str
    token: int

    log_area = "coordination"
    log_level = INFO

    def __str__(self) -> str:
        return f"{self.name}: elected, token {self.token}"


@frozen
class BackedUp(Report):
    """Logged when a stream was copied to a folder; `size` is in bytes."""

    stream: str
    size: int
    seconds: float

    log_area = "backup"
    log_level = INFO

    def __str__(self) -> str:
        return f"backed up {self.stream}: {self.size} bytes in {self.seconds:.1f} s"


@frozen
class ContentKept(Report):
    """Logged when an object was replaced or deleted, and its previous content was not removed."""

    name: str
    bucket: str
    nuid: str
    reason: str

    log_area = "object"
    log_level = WARNING

    def __str__(self) -> str:
        return (
            f"bucket {self.bucket}: the content that object '{self.name}' had before is kept:"
            f" {self.reason}"
        )


@frozen
class ContentLeft(Report):
    """Logged when an object was stored, but its previous content could not be removed."""

    name: str
    bucket: str
    nuid: str
    error: BaseException

    log_area = "object"
    log_level = WARNING

    def __str__(self) -> str:
        return (
            f"bucket {self.bucket}: the content that object {self.name} had before remains,"
            f" sweep() removes it: {self.error}"
        )


@frozen
class ObjectUnreadable(Report):
    """Logged when a list or a watch returned an object whose metadata cannot be read."""

    name: str
    bucket: str
    seq: int
    error: str

    log_area = "object"
    log_level = WARNING
    log_limit = "record"

    def _kind(self) -> tuple[str, str, int]:
        return self.bucket, self.name, self.seq

    def __str__(self) -> str:
        return f"bucket {self.bucket}: object '{self.name}' cannot be read: {self.error}"


@frozen
class MarkersSkipped(Report):
    """Logged when markers of a bucket were not removed, because their keys are no valid ones."""

    bucket: str
    count: int

    log_area = "kv"
    log_level = WARNING

    def __str__(self) -> str:
        return (
            f"bucket {self.bucket}: markers are kept ({self.count}), because their keys"
            " have a wildcard or are not UTF-8"
        )


@frozen
class Restored(Report):
    """Logged when a stream was restored from a backup; `size` is in bytes."""

    stream: str
    size: int
    seconds: float

    log_area = "backup"
    log_level = INFO

    def __str__(self) -> str:
        return f"restored {self.stream}: {self.size} bytes in {self.seconds:.1f} s"
