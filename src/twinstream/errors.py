"""The exceptions of Twinstream. `js_async` and `js_sync` use the same classes.

::

    TwinstreamError
    ├── BadArgument (ValueError)         an argument is invalid; nothing was sent
    │   └── WrongHandler                 a coroutine function instead of a plain one, or the reverse
    ├── BadPayload (ValueError)          a payload is not UTF-8, or not JSON
    ├── IterationEnded                   `next` after the end of an iteration
    ├── NotStarted                       `stop` of an object that was never started
    ├── Unsupported                      the connected server lacks the feature
    ├── ConnectionFailed (OSError)       no server of the pool could be reached
    │   └── AuthenticationFailed         the server refused the credentials
    ├── ConnectionLost (OSError)         the connection was lost before the response arrived
    ├── ConnectionClosed                 the connection is closed, or every reconnect failed
    ├── WrongOwner                       used after fork, or on a second event loop
    ├── ProtocolError                    the peer does not speak the NATS protocol
    ├── ServerError                      the server sent -ERR
    │   └── PermissionDenied             … because the user may not use a subject
    ├── RequestTimeout (TimeoutError)    the deadline passed without a response
    ├── OutcomeUnknown                   it is unknown whether the message was stored
    ├── SubjectTaken                     the subject already has another message
    ├── NotPromised                      the stream's settings do not give the required guarantee
    ├── NoResponders                     no client or server responds on the subject
    │   ├── NoStream                     … because no stream captures the subject
    │   ├── NoLeader                     … because its stream has no leader at the moment
    │   └── JetStreamOff                 … because JetStream is not available
    ├── PublishFailures                  failed messages whose error the caller did not read
    ├── BadAnswer                        a response that JetStream does not send
    ├── JetStreamError                   the JetStream API returned an error (err_code)
    │   ├── JetStreamNotEnabled          also a JetStreamOff
    │   ├── StreamNotFound, ConsumerNotFound, MessageNotFound,
    │   ├── StreamExists, ConsumerExists, SubjectOverlap, InvalidConfig,
    │   ├── WrongLastSequence, WrongLastMessageId, WrongStream, StoreRefused, MessageExists
    │   └── MessageIdInProcess           the stream is storing a message with this id
    ├── PullError                        a pull ended with an error that a retry does not fix
    │   ├── PullRefused                  the pull request exceeds a limit of the consumer
    │   ├── ConsumerDeleted, ConsumerIsPush
    │   └── BadPull                      the server rejects the request as invalid
    ├── LeaseLost                        the client lost a lock, a semaphore slot or the leadership
    ├── AtomicBatchFailed                an atomic batch is closed, or its commit was not confirmed
    │   └── AtomicBatchUnknown           … and may be stored or not (also an OutcomeUnknown)
    └── AcknowledgementError             a message cannot be acknowledged as requested
        ├── AlreadyAcknowledged          … because it was acknowledged before
        └── NotAcknowledgeable           … because no consumer expects an acknowledgement of it

The errors of key-value buckets are in `twinstream.core.kv.errors`, those of object stores in
`twinstream.core.object_store.errors`, and those of consumer groups in
`twinstream.core.groups.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

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
from twinstream.models.error_codes import ADVICE, CLASSES, STREAM_NAME_EXISTS_RESTORE

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
    """An argument is invalid; nothing was sent to the server."""


class IterationEnded(TwinstreamError):
    """`next` was called after the end of an iteration.

    Check `is_ended` of the iteration before the call.
    """


class BadPayload(TwinstreamError, ValueError):
    """A payload cannot be decoded as the caller requested: as UTF-8 text or as JSON."""


class NotStarted(TwinstreamError):
    """The caller stopped an object that was never started."""


class WrongHandler(BadArgument):
    """A callback is a coroutine function but must be a plain function, or the reverse."""


class Unsupported(TwinstreamError):
    """The connected server is too old for the requested feature."""


class ConnectionFailed(TwinstreamError, OSError):
    """No server could be reached. The message lists the error of each attempt."""


class AuthenticationFailed(ConnectionFailed):
    """The server refused the credentials of the client."""


class ConnectionLost(TwinstreamError, OSError):
    """The connection was lost before the response arrived. The outcome of the call is unknown."""


class ConnectionClosed(TwinstreamError):
    """The connection is closed: the application called `close`, or every reconnect failed."""


class WrongOwner(TwinstreamError):
    """The connection was created in another process or event loop.

    Create a connection in each process and event loop.
    """


class LeaseLost(TwinstreamError):
    """The client no longer has a lock, a semaphore slot or the leadership.

    The message contains the reason.
    """


class ProtocolError(TwinstreamError):
    """The client received bytes that violate the NATS protocol."""


class ServerError(TwinstreamError):
    """The server sent an error with `-ERR`."""


class PermissionDenied(ServerError):
    """The user may not publish or subscribe to a subject."""

    def __str__(self) -> str:
        return f"{super().__str__()}; `twinstream permissions` prints what a program needs"


class RequestTimeout(TwinstreamError, TimeoutError):
    """The deadline passed without a response."""


class OutcomeUnknown(TwinstreamError):
    """It is unknown whether the server stored the message.

    `__cause__` is the last error. If the caller publishes the message again, it may be stored
    twice, unless the write is idempotent (see `insert`).
    """


class SubjectTaken(TwinstreamError):
    """The subject already has another message, but is intended for a single message."""


class NotPromised(TwinstreamError):
    """The settings of the stream do not give the guarantee that a call needs.

    `promise` is the guarantee. `holes` lists each setting that breaks it, and the required value.
    """

    def __init__(self, stream: str, promise: str, holes: tuple[Hole, ...]) -> None:
        self.stream = stream
        self.promise = promise
        self.holes = holes
        super().__init__(f"{stream} does not guarantee {promise}: {'; '.join(map(str, holes))}")


class NoStream(NoResponders):
    """No stream of the account and domain captures the subject, so the message is not stored."""


class NoLeader(NoResponders):
    """The stream that captures the subject has no leader, so the message is not stored.

    Publish the message again later.
    """


class PublishFailures(TwinstreamError):
    """Published messages were not acknowledged, and the caller did not read their `error`.

    `count` is the number of these messages; `failures` contains the first 100 of them.
    """

    def __init__(self, failures: Sequence[PublishFailure], count: int) -> None:
        self.failures = tuple(failures)
        self.count = count
        shown = "; ".join(str(each.error) for each in self.failures[:3])
        messages = "1 message was" if count == 1 else f"{count} messages were"
        super().__init__(f"{messages} not acknowledged: {shown}")


class BadAnswer(TwinstreamError):
    """The response is not in a form that JetStream sends. Usually another client sent it.

    Also raised if only the first of several responses arrives, because the account that exports the
    JetStream API does so without `response_type: stream`.
    """


_RESTORED: Final = "delete it first: a restored stream keeps its name"


class _Exists(JetStreamError):
    # What the caller can do; an object that consists of streams names its own calls.
    _next = ""
    # The server's description, without the differences.
    _reason = ""
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        next_ = _RESTORED if self.err_code == STREAM_NAME_EXISTS_RESTORE else self._next
        return f"{super().__str__()}; {next_}" if next_ else super().__str__()

    def with_differences(self, found: tuple[Difference, ...]) -> Self:
        """Return a copy of the error with `differences` and with them in the message."""
        because = "; ".join(str(each) for each in found) or "no requested field differs"
        reason = self._reason or self.description
        error = type(self)(
            f"{reason}: {because}",
            code=self.code,
            err_code=self.err_code,
            subject=self.subject,
        )
        error.differences = found
        error._reason = reason
        return error


class StreamExists(_Exists):
    """A stream with this name exists (10130), or exists with another configuration (10058).

    `differences` lists the fields that differ. It is empty if the existing configuration was not
    looked up.
    """

    _next = (
        "get_stream returns it as it is, create_or_update_stream changes it (settings that are not"
        " given return to their defaults), and delete_stream deletes it"
    )


class ConsumerExists(_Exists):
    """A consumer with this name exists with another configuration (10013, 10105, 10148).

    `differences` lists the fields that differ. It is empty if the existing configuration was not
    looked up.
    """

    _next = (
        "get_consumer (of a push consumer bind_push) returns it as it is, create_or_update_consumer"
        " changes it (settings that are not given return to their defaults), and delete_consumer"
        " deletes it"
    )


class MessageExists(StoreRefused):
    """The subject already has the maximum number of messages (10077, per subject)."""


class MessageIdInProcess(JetStreamError):
    """The leader of the stream is storing a message with this id (10158).

    Usually the error ends after a moment, or when another server becomes the leader. But a server
    that lost the leadership and regained it (seen with 2.15.1) may return the error for a message
    that it never stored. Then the error ends after the duplicate window of the stream, or when
    another server becomes the leader.
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
    """A pull ended with an error that a retry does not fix."""


class PullRefused(PullError):
    """The pull request exceeds a limit of the consumer.

    `limit` is the name of the limit in the configuration of the consumer. `asked` is the requested
    value and `allowed` the value of the limit: in messages (`max_batch`), bytes (`max_bytes`),
    seconds (`max_expires`) or open requests (`max_waiting`). A value that is not known is None.
    `text` is the status that the server sent.
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
    """The consumer or its stream was deleted."""


class ConsumerIsPush(PullError):
    """The consumer is a push consumer, so the server refuses pull requests."""


class BadPull(PullError):
    """The server refused the pull request as invalid (status 400 or 412)."""


class AcknowledgementError(TwinstreamError):
    """A message cannot be acknowledged as requested."""


class AlreadyAcknowledged(AcknowledgementError):
    """The delivery of the message was acknowledged before.

    The client does not send a second acknowledgement, which would have no effect or a harmful one.
    """


class NotAcknowledgeable(AcknowledgementError):
    """The message cannot be acknowledged: no JetStream consumer with acknowledgements sent it."""


class AtomicBatchFailed(TwinstreamError):
    """An atomic batch is closed and accepts no messages, or its commit was not confirmed.

    `outcome` states whether nothing is stored or the outcome is unknown; `reason` contains the
    reason.
    """

    def __init__(self, text: str, outcome: AtomicOutcome, reason: str) -> None:
        self.text = text
        self.outcome = outcome
        self.reason = reason
        super().__init__(text)


class AtomicBatchUnknown(AtomicBatchFailed, OutcomeUnknown):
    """The commit of an atomic batch was sent, but it is unknown whether the server applied it."""
