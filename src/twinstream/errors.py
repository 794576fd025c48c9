"""All errors of this package. Both twins use the same classes.

::

    TwinstreamError
    ├── BadArgument (ValueError)         an argument was refused before anything was sent
    │   └── WrongHandler                 a coroutine function instead of a plain one, or the reverse
    ├── BadPayload (ValueError)          a payload is not UTF-8, or not JSON
    ├── IterationEnded                   `next` after the end of an iteration
    ├── NotStarted                       something was stopped that was never started
    ├── Unsupported                      the connected server lacks the feature
    ├── ConnectionFailed (OSError)       no server of the pool could be reached
    │   └── AuthenticationFailed         the server refused the credentials
    ├── ConnectionLost (OSError)         the connection was lost before the response arrived
    ├── ConnectionClosed                 the connection was closed by the application
    ├── WrongOwner                       used after fork, or on a second event loop
    ├── ProtocolError                    the peer does not speak the NATS protocol
    ├── ServerError                      the server sent -ERR
    │   └── PermissionDenied             … for a subject the user may not use
    ├── RequestTimeout (TimeoutError)    the deadline passed without a response
    ├── OutcomeUnknown                   it is unknown whether the message was stored
    ├── SubjectTaken                     another message has the subject of this message
    ├── NotPromised                      the stream's settings do not give the required guarantee
    ├── NoResponders                     there are no responders for the subject
    │   ├── NoStream                     … because no stream has it
    │   ├── NoLeader                     … because its stream has no leader at the moment
    │   └── JetStreamOff                 … because JetStream is not available
    ├── PublishFailures                  unhandled failures, at the end of publishing
    ├── BadAnswer                        a response that JetStream does not send
    ├── JetStreamError                   the JetStream API returned an error (err_code)
    │   ├── JetStreamNotEnabled          also a JetStreamOff
    │   ├── StreamNotFound, ConsumerNotFound, MessageNotFound,
    │   ├── StreamExists, ConsumerExists, SubjectOverlap, InvalidConfig,
    │   ├── WrongLastSequence, WrongLastMessageId, WrongStream, StoreRefused, MessageExists
    │   └── MessageIdInProcess           the stream is just storing a message with this id
    ├── PullError                        a pull ended, and waiting does not help
    │   ├── PullRefused                  a limit of the consumer: which, requested, allowed
    │   ├── ConsumerDeleted, ConsumerIsPush
    │   └── BadPull                      the server rejects the request as invalid
    ├── LeaseLost                        a lock, slot or term is no longer held, and why
    ├── AtomicBatchFailed                an atomic batch is closed, or its commit was not confirmed
    │   └── AtomicBatchUnknown           … and may be stored or not (also an OutcomeUnknown)
    └── AcknowledgementError
        ├── AlreadyAcknowledged
        └── NotAcknowledgeable           not a JetStream message

Errors of key-value buckets are in `twinstream.core.kv.errors`, those of consumer groups in
`twinstream.core.groups.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from twinstream.core.error_details.jetstream_error import (
    JetStreamError,
    JetStreamOff,
    NoResponders,
    TwinstreamError,
)
from twinstream.core.error_details.server_errors import (
    ConsumerNotFound,
    InvalidConfig,
    JetStreamNotEnabled,
    MessageNotFound,
    StoreRefused,
    StreamNotFound,
    SubjectOverlap,
    WrongLastMessageId,
    WrongLastSequence,
    WrongStream,
)
from twinstream.models.error_codes import ADVICE, CLASSES

if TYPE_CHECKING:
    from twinstream.core.error_details.atomic_outcome import AtomicOutcome
    from twinstream.core.error_details.config_diff import Difference
    from twinstream.core.error_details.guarantee_gap import Hole
    from twinstream.core.publish.request import PublishFailure

__all__ = [
    "AcknowledgementError",
    "AlreadyAcknowledged",
    "AtomicBatchFailed",
    "AtomicBatchUnknown",
    "AuthenticationFailed",
    "BadAnswer",
    "BadArgument",
    "BadPayload",
    "BadPull",
    "ConnectionClosed",
    "ConnectionFailed",
    "ConnectionLost",
    "ConsumerDeleted",
    "ConsumerExists",
    "ConsumerIsPush",
    "ConsumerNotFound",
    "InvalidConfig",
    "IterationEnded",
    "JetStreamError",
    "JetStreamNotEnabled",
    "JetStreamOff",
    "LeaseLost",
    "MessageExists",
    "MessageIdInProcess",
    "MessageNotFound",
    "NoLeader",
    "NoResponders",
    "NoStream",
    "NotAcknowledgeable",
    "NotPromised",
    "NotStarted",
    "OutcomeUnknown",
    "PermissionDenied",
    "ProtocolError",
    "PublishFailures",
    "PullError",
    "PullRefused",
    "RequestTimeout",
    "ServerError",
    "StoreRefused",
    "StreamExists",
    "StreamNotFound",
    "SubjectOverlap",
    "SubjectTaken",
    "TwinstreamError",
    "Unsupported",
    "WrongHandler",
    "WrongLastMessageId",
    "WrongLastSequence",
    "WrongOwner",
    "WrongStream",
    "api_error",
]


class BadArgument(TwinstreamError, ValueError):
    """An argument was refused before anything was sent."""


class IterationEnded(TwinstreamError):
    """`next` was called after the end of an iteration; check its `is_ended` before."""


class BadPayload(TwinstreamError, ValueError):
    """A payload is not in the requested form: text in UTF-8, or JSON."""


class NotStarted(TwinstreamError):
    """Something was stopped that was never started."""


class WrongHandler(BadArgument):
    """A coroutine function was given where a plain function is needed, or the reverse."""


class Unsupported(TwinstreamError):
    """The connected server is too old for the requested feature."""


class ConnectionFailed(TwinstreamError, OSError):
    """No server could be reached; the message lists the error of each attempt."""


class AuthenticationFailed(ConnectionFailed):
    """The server refused the credentials."""


class ConnectionLost(TwinstreamError, OSError):
    """The connection was lost before the response arrived; the outcome is unknown."""


class ConnectionClosed(TwinstreamError):
    """The connection is closed, by `close` or because every reconnect failed."""


class WrongOwner(TwinstreamError):
    """The connection belongs to another process or event loop; create a new one there."""


class LeaseLost(TwinstreamError):
    """A lock, a semaphore slot or a leader's term is no longer held; the text says why."""


class ProtocolError(TwinstreamError):
    """Bytes that are not the NATS protocol."""


class ServerError(TwinstreamError):
    """The server reported an error with -ERR."""


class PermissionDenied(ServerError):
    """The user may not publish or subscribe to a subject."""


class RequestTimeout(TwinstreamError, TimeoutError):
    """The deadline passed without a response."""


class OutcomeUnknown(TwinstreamError):
    """It is unknown whether the server stored the message; the cause is the last error.

    Publishing it again may store it twice, unless the write is idempotent (see `insert`).
    """


class SubjectTaken(TwinstreamError):
    """The subject intended for a single message already has another message."""


class NotPromised(TwinstreamError):
    """The stream's settings do not give the guarantee that a call needs.

    `holes` lists each setting that breaks it, and what to set instead.
    """

    def __init__(self, stream: str, promise: str, holes: tuple[Hole, ...]) -> None:
        self.stream = stream
        self.promise = promise
        self.holes = holes
        super().__init__(f"{stream} does not guarantee {promise}: {'; '.join(map(str, holes))}")


class NoStream(NoResponders):
    """No stream of this account and domain has the subject, so the message is not stored."""


class NoLeader(NoResponders):
    """A stream has the subject but no leader, so the message is not stored; try again."""


class PublishFailures(TwinstreamError):
    """Messages that were not acknowledged, and whose `error` was not read by the caller.

    `count` is their number, `failures` the first of them (at most 100).
    """

    def __init__(self, failures: Sequence[PublishFailure], count: int) -> None:
        self.failures = tuple(failures)
        self.count = count
        shown = "; ".join(str(each.error) for each in self.failures[:3])
        messages = "1 message was" if count == 1 else f"{count} messages were"
        super().__init__(f"{messages} not acknowledged: {shown}")


class BadAnswer(TwinstreamError):
    """A response that JetStream does not send, so another client sent it."""


class _Exists(JetStreamError):
    differences: tuple[Difference, ...] = ()

    def with_differences(self, found: tuple[Difference, ...]) -> Self:
        """Return the error with the differences in its text."""
        because = "; ".join(str(each) for each in found) or "no requested field differs"
        error = type(self)(
            f"{self.description}: {because}",
            code=self.code,
            err_code=self.err_code,
            subject=self.subject,
        )
        error.differences = found
        return error


class StreamExists(_Exists):
    """A stream with this name exists with another configuration (10058), or at all (10130).

    `differences` lists the fields that differ, if the existing configuration was looked up.
    """


class ConsumerExists(_Exists):
    """A consumer with this name exists with another configuration (10013, 10105, 10148).

    `differences` lists the fields that differ, if the existing configuration was looked up.
    """


class MessageExists(StoreRefused):
    """The subject already has the maximum number of messages (10077, per subject)."""


class MessageIdInProcess(JetStreamError):
    """The stream's leader is just storing a message with this id (10158).

    The state is temporary: it ends after a moment, or with the election of a leader. But servers
    (seen with 2.15.1) that lost leadership and regained it may return it for a message that they
    never stored, until the duplicate window of the stream is over or another server leads.
    """

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; publish it again with the same id: after a change of leaders"
            " that may only help after the stream's duplicate_window"
        )


def api_error(error: dict[str, object], *, subject: str = "") -> JetStreamError:
    """Return the exception for the `error` member of a JetStream response."""
    description = str(error.get("description") or "JetStream gave no reason")
    code = _integer(error.get("code"))
    err_code = _integer(error.get("err_code"))
    cls: type[JetStreamError] = globals()[CLASSES.get(err_code, "JetStreamError")]
    if cls is StoreRefused and "per subject" in description:
        cls = MessageExists
    raised = cls(description, code=code, err_code=err_code, subject=subject)
    if err_code in ADVICE:
        raised.add_note(ADVICE[err_code])
    return raised


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


class PullError(TwinstreamError):
    """A pull ended for a reason that a retry does not solve."""


class PullRefused(PullError):
    """The request exceeds a limit of the consumer.

    `limit` is its name in the consumer's configuration, `text` is the server's status. `asked` and
    `allowed` have the same unit: messages (`max_batch`), bytes (`max_bytes`), seconds
    (`max_expires`) or open requests (`max_waiting`). They are None if unknown.
    """

    def __init__(self, limit: str, asked: float | None, allowed: float | None, text: str) -> None:
        self.limit = limit
        self.asked = asked
        self.allowed = allowed
        self.text = text
        unit = " s" if limit == "max_expires" else ""
        wanted = "one more request" if asked is None else f"{asked:.15g}{unit}"
        most = "less" if allowed is None else f"{allowed:.15g}{unit}"
        super().__init__(
            f"the pull asked for {wanted}, the consumer's {limit} allows {most} (server: {text})"
        )


class ConsumerDeleted(PullError):
    """The consumer, or its stream, was deleted."""


class ConsumerIsPush(PullError):
    """A push consumer cannot be pulled from."""


class BadPull(PullError):
    """The server rejects the pull request as invalid (400, 412)."""


class AcknowledgementError(TwinstreamError):
    """A message cannot be acknowledged as requested."""


class AlreadyAcknowledged(AcknowledgementError):
    """The message was acknowledged before; a second acknowledgement would be ignored or harmful."""


class NotAcknowledgeable(AcknowledgementError):
    """The message did not come from a JetStream consumer with acknowledgements."""


class AtomicBatchFailed(TwinstreamError):
    """An atomic batch is closed and accepts no messages, or its commit was not confirmed.

    `outcome` states whether nothing is stored or the outcome is unknown; `reason` states why.
    """

    def __init__(self, text: str, outcome: AtomicOutcome, reason: str) -> None:
        self.text = text
        self.outcome = outcome
        self.reason = reason
        super().__init__(text)


class AtomicBatchUnknown(AtomicBatchFailed, OutcomeUnknown):
    """A commit was sent, and it could not be determined whether it took effect."""
