"""Every error that the SDK raises, the same classes in both twins.

::

    TwinstreamError
    ├── BadArgument (ValueError)         refused before anything reached the socket
    │   └── WrongHandler                 a coroutine function where a plain one is due, or reverse
    ├── BadPayload (ValueError)          a payload is no text in UTF-8, or no JSON
    ├── IterationEnded                   `next` after the end of an iteration
    ├── NotStarted                       the end of work was asked for that was never started
    ├── Unsupported                      the connected server lacks the feature
    ├── ConnectionFailed (OSError)       no server of the pool could be reached
    │   └── AuthenticationFailed         the server refused the credentials
    ├── ConnectionLost (OSError)         the link broke before the answer came
    ├── ConnectionClosed                 the connection was closed by the program
    ├── WrongOwner                       used after fork, or on a second event loop
    ├── ProtocolError                    the peer does not speak the NATS protocol
    ├── ServerError                      the server sent -ERR
    │   └── PermissionDenied             … for a subject the user may not use
    ├── RequestTimeout (TimeoutError)    the deadline passed without an answer
    ├── OutcomeUnknown                   whether the message was stored cannot be told
    ├── SubjectTaken                     another message has the subject that was to be its own
    ├── NotPromised                      the stream's settings do not give what was asked for
    ├── NoResponders                     nobody serves the subject
    │   ├── NoStream                     … because no stream has it
    │   ├── NoLeader                     … because its stream has no leader now
    │   └── JetStreamOff                 … because JetStream is not served here
    ├── PublishFailures                  what failed and nobody looked at, at the end of publishing
    ├── BadAnswer                        an answer that is not what JetStream sends
    ├── JetStreamError                   the JetStream API answered with an error (err_code)
    │   ├── JetStreamNotEnabled          also a JetStreamOff: there is nothing more to it
    │   ├── StreamNotFound, ConsumerNotFound, MessageNotFound,
    │   ├── StreamExists, ConsumerExists, SubjectOverlap, InvalidConfig,
    │   ├── WrongLastSequence, WrongLastMessageId, WrongStream, StoreRefused, MessageExists
    │   └── MessageIdInProcess           the stream takes the message for one that is being stored
    ├── PullError                        a pull ended in a way that waiting cannot mend
    │   ├── PullRefused                  a limit of the consumer: which, asked, allowed
    │   ├── ConsumerDeleted, ConsumerIsPush
    │   └── BadPull                      the server calls the request wrong
    ├── LeaseLost                        a lock, place or term is not held any more, and why
    ├── AtomicBatchFailed                an atomic batch is closed, or its commit was not confirmed
    │   └── AtomicBatchUnknown           … and may be stored or not (an OutcomeUnknown, too)
    └── AcknowledgementError
        ├── AlreadyAcknowledged
        └── NotAcknowledgeable           not a message of JetStream
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from twinstream.core.error_details.api_target import api_target
from twinstream.core.error_details.atomic_outcome import AtomicOutcome
from twinstream.core.error_details.config_diff import Difference
from twinstream.core.error_details.guarantee_gap import Hole
from twinstream.models.restorable import Restorable

if TYPE_CHECKING:
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


class TwinstreamError(Restorable):
    """Base of all errors of this SDK."""


class BadArgument(TwinstreamError, ValueError):
    """An argument was refused before anything was sent."""


class IterationEnded(TwinstreamError):
    """`next` was called after the end of an iteration; ask its `is_ended` first."""


class BadPayload(TwinstreamError, ValueError):
    """A payload is not what it was asked for as: text in UTF-8, or JSON."""


class NotStarted(TwinstreamError):
    """The end of work was asked for that was never started."""


class WrongHandler(BadArgument):
    """A coroutine function was given where a plain function is needed, or the reverse."""


class Unsupported(TwinstreamError):
    """The connected server is too old for what was asked."""


class ConnectionFailed(TwinstreamError, OSError):
    """No server could be reached; the message lists what each attempt met."""


class AuthenticationFailed(ConnectionFailed):
    """The server refused the credentials."""


class ConnectionLost(TwinstreamError, OSError):
    """The link broke before the answer came; whether the server acted is unknown."""


class ConnectionClosed(TwinstreamError):
    """The connection is closed, by `close` or because every reconnect failed."""


class WrongOwner(TwinstreamError):
    """The connection belongs to another process or event loop; connect anew there."""


class LeaseLost(TwinstreamError):
    """A lock, a place of a semaphore or a leader's term is not held any more; the text says why."""


class ProtocolError(TwinstreamError):
    """Bytes that are not the NATS protocol."""


class ServerError(TwinstreamError):
    """The server reported an error with -ERR."""


class PermissionDenied(ServerError):
    """The user may not publish or subscribe to a subject."""


class RequestTimeout(TwinstreamError, TimeoutError):
    """The deadline passed without an answer."""


class OutcomeUnknown(TwinstreamError):
    """Whether the server stored the message cannot be told; the cause says what was met last.

    Writing it anew may store it twice, unless the write is one that cannot (see `insert`).
    """


class SubjectTaken(TwinstreamError):
    """The subject that a message was to have for itself holds another message."""


class NotPromised(TwinstreamError):
    """The stream's settings do not give the promise that a call is made for.

    `holes` says setting by setting what is wrong and what to set instead.
    """

    def __init__(self, stream: str, promise: str, holes: tuple[Hole, ...]) -> None:
        self.stream = stream
        self.promise = promise
        self.holes = holes
        super().__init__(f"{stream} does not promise {promise}: {'; '.join(map(str, holes))}")


class NoResponders(TwinstreamError):
    """Nobody serves the subject: no such stream or consumer, or no leader now."""


class NoStream(NoResponders):
    """No stream of this account and domain has the subject, so the message is not stored."""


class NoLeader(NoResponders):
    """A stream has the subject but no leader now, so the message is not stored; try again."""


class JetStreamOff(NoResponders):
    """JetStream is not served: off for the server or account, or another prefix or domain."""


class PublishFailures(TwinstreamError):
    """Messages that were not acknowledged, and whose `error` the program had not read by the end.

    `count` is how many, `failures` the first of them (100 at most).
    """

    def __init__(self, failures: Sequence[PublishFailure], count: int) -> None:
        self.failures = tuple(failures)
        self.count = count
        shown = "; ".join(str(each.error) for each in self.failures[:3])
        messages = "1 message was" if count == 1 else f"{count} messages were"
        super().__init__(f"{messages} not acknowledged: {shown}")


class BadAnswer(TwinstreamError):
    """An answer came that is not what JetStream sends, so somebody else gave it."""


class JetStreamError(TwinstreamError):
    """The JetStream API answered with an error.

    `err_code` is the server's stable key, `code` its HTTP-like class, `description` its text.
    """

    def __init__(self, description: str, *, code: int, err_code: int, subject: str = "") -> None:
        self.description = description
        self.code = code
        self.err_code = err_code
        self.subject = subject
        where = f" [{api_target(subject)}]" if subject else ""
        super().__init__(f"{description} (err_code {err_code}){where}")


class JetStreamNotEnabled(JetStreamError, JetStreamOff):
    """JetStream is off on this server or for this account, as it says (10039, 10076)."""


class StreamNotFound(JetStreamError):
    """No such stream (10059)."""


class ConsumerNotFound(JetStreamError):
    """No such consumer (10014, 10149)."""


class MessageNotFound(JetStreamError):
    """No message with that sequence or subject (10037, 10043, 10057)."""


class _Exists(JetStreamError):
    differences: tuple[Difference, ...] = ()

    def with_differences(self, found: tuple[Difference, ...]) -> Self:
        """Return the error with an explanation."""
        because = "; ".join(str(each) for each in found) or "no field that was asked for"
        error = type(self)(
            f"{self.description}: {because}",
            code=self.code,
            err_code=self.err_code,
            subject=self.subject,
        )
        error.differences = found
        return error


class StreamExists(_Exists):
    """A stream of that name exists with another configuration, or at all (10058, 10130).

    `differences` tells field by field what was wanted and what is, where the server was asked.
    """


class ConsumerExists(_Exists):
    """A consumer of that name exists with another configuration (10013, 10105, 10148).

    `differences` tells field by field what was wanted and what is, where the server was asked.
    """


class SubjectOverlap(JetStreamError):
    """Another stream already listens to one of the subjects (10065)."""


class InvalidConfig(JetStreamError):
    """The server refuses the configuration (10012, 10025, 10052)."""


class WrongLastSequence(JetStreamError):
    """An expected last sequence did not hold (10071, 10164)."""


class WrongLastMessageId(JetStreamError):
    """The expected last message id did not hold (10070)."""


class WrongStream(JetStreamError):
    """The message reached another stream than expected (10060)."""


class StoreRefused(JetStreamError):
    """The stream is full and discards new messages (10077)."""


class MessageExists(StoreRefused):
    """The subject already holds as many messages as it may (10077, per subject)."""


class MessageIdInProcess(JetStreamError):
    """The stream's leader takes the message for one that is being stored just now (10158).

    That passes within a moment, or with the election of a leader. But servers (seen of 2.15.1) that
    lost the lead and got it back may say so of a message that they never stored, until the
    duplicate window of the stream is over or another server leads.
    """

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; publish it again with the same id: after a change of leaders"
            " that may help only when the stream's duplicate_window is over"
        )


_BY_CODE: dict[int, type[JetStreamError]] = {
    10012: InvalidConfig,
    10013: ConsumerExists,
    10014: ConsumerNotFound,
    10025: InvalidConfig,
    10037: MessageNotFound,
    10039: JetStreamNotEnabled,
    10043: MessageNotFound,
    10052: InvalidConfig,
    10057: MessageNotFound,
    10058: StreamExists,
    10059: StreamNotFound,
    10060: WrongStream,
    10065: SubjectOverlap,
    10070: WrongLastMessageId,
    10071: WrongLastSequence,
    10076: JetStreamNotEnabled,
    10077: StoreRefused,
    10105: ConsumerExists,
    10130: StreamExists,
    10148: ConsumerExists,
    10149: ConsumerNotFound,
    10158: MessageIdInProcess,
    10164: WrongLastSequence,
}


_COPY = "to publish a received message again, give copied_headers(message.headers)"

# What to do where the server's words do not say it.
_ADVICE: dict[int, str] = {
    10074: "num_replicas above 1 needs a cluster",
    10111: "set allow_rollup_hdrs of the stream",
    10166: "set allow_msg_ttl of the stream, which cannot be undone",
    10168: "make the stream with allow_msg_counter, which cannot be set later",
    10174: "set allow_atomic of the stream",
    10188: "set allow_msg_schedules of the stream, which cannot be undone",
    10212: f"Nats-Scheduler and Nats-Schedule-Next only cancel a schedule together; {_COPY}",
    10227: f"only servers write Nats-Stream-Source; {_COPY}",
}


def api_error(error: dict[str, object], *, subject: str = "") -> JetStreamError:
    """Return the exception for the `error` member of a JetStream answer."""
    description = str(error.get("description") or "JetStream gave no reason")
    code = _integer(error.get("code"))
    err_code = _integer(error.get("err_code"))
    cls = _BY_CODE.get(err_code, JetStreamError)
    if cls is StoreRefused and "per subject" in description:
        cls = MessageExists
    raised = cls(description, code=code, err_code=err_code, subject=subject)
    if err_code in _ADVICE:
        raised.add_note(_ADVICE[err_code])
    return raised


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


class PullError(TwinstreamError):
    """A pull ended in a way that asking again cannot mend."""


class PullRefused(PullError):
    """The request goes beyond a limit of the consumer.

    `limit` names it as the consumer's configuration does, `text` is the server's status. `asked`
    and `allowed` are numbers of one unit: messages (`max_batch`), bytes (`max_bytes`), seconds
    (`max_expires`) or open requests (`max_waiting`). None is what is not known.
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
    """The server calls the pull request wrong (400, 412)."""


class AcknowledgementError(TwinstreamError):
    """A message cannot be acknowledged as asked."""


class AlreadyAcknowledged(AcknowledgementError):
    """The message was acknowledged before; a second word on it would be ignored or harmful."""


class NotAcknowledgeable(AcknowledgementError):
    """The message did not come from a JetStream consumer that wants acknowledgements."""


class AtomicBatchFailed(TwinstreamError):
    """An atomic batch is closed and takes nothing more, or its commit was not confirmed.

    `outcome` tells whether nothing is stored, or whether that is unknown; `reason` tells why.
    """

    def __init__(self, text: str, outcome: AtomicOutcome, reason: str) -> None:
        self.text = text
        self.outcome = outcome
        self.reason = reason
        super().__init__(text)


class AtomicBatchUnknown(AtomicBatchFailed, OutcomeUnknown):
    """A commit was sent, and whether it took effect could not be found out."""
