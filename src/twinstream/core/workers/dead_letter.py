"""Dead letters: which failures cause a dead letter, its subject, and its content.

Source: nats-server 2.11 to 2.15. A consumer stops delivering a message in two cases: it was
delivered `max_deliver` times without an acknowledgement, or a client terminated it. The server
publishes one advisory for each case. The server itself also terminates messages that are removed by
limits, a purge or a delete while they are pending acknowledgement. These are not failures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Literal, cast

from attrs import field, frozen

from twinstream.core.consume.advisories import contradiction, subject_of
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.header_text import one_line, valid
from twinstream.core.wire.response import read_json
from twinstream.core.wire.subjects import check_filter, check_name
from twinstream.errors import BadArgument, JetStreamError, TwinstreamError
from twinstream.models import (
    ConsumerConfig,
    DecodeError,
    MaxDeliver,
    StreamConfig,
    Terminated,
    Timestamp,
    decode,
)
from twinstream.models.digits import natural
from twinstream.models.error_codes import HEADERS_TOO_LARGE, MESSAGE_TOO_LARGE
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest

__all__ = [
    "SERVER_REASONS",
    "Cause",
    "DeadLetter",
    "Failure",
    "Names",
    "Part",
    "Skip",
    "check_complete",
    "foreign_names",
    "headers_of_misfit",
    "is_copy",
    "is_later_message",
    "is_letter_of",
    "is_of_earlier_stream",
    "letter_of_failure",
    "read_failure",
    "read_letter",
    "replay_request",
    "second_subject",
    "stored_reason",
    "too_large",
]

Part = Literal["data", "headers"]
"""A part of a message that its dead letter may have to omit."""

Cause = Literal["max_deliver", "terminated", "rejected"]
"""The cause of a failure: too many deliveries, termination by a client, rejection by a worker."""

SERVER_REASONS: Final = frozenset(
    {"Unacknowledged message was deleted", "Message deleted by stream limits"}
)
"""The reasons with which a server terminates a pending message that is removed."""
# The beginning of the reason if a worker has already stored the dead letter.
_STORED: Final = "stored as a dead letter: "
# Assumed maximum difference in nanoseconds between the clocks of the server that created the stream
# and the server that created the advisory.
_SKEW: Final = 1_000_000_000
_TEXT: Final = 2000
# The id of an advisory becomes a token of a subject and the value of a header.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Sequences and counts are below this number.
_MAX_NUMBER: Final = 2**63


@frozen(kw_only=True)
class Failure:
    """A message that a consumer no longer delivers."""

    stream: str
    consumer: str
    stream_seq: int
    deliveries: int
    cause: Cause
    reason: str
    time: Timestamp
    advisory: str = ""
    """The unique id of the advisory, empty if a worker rejected the message."""


@frozen
class Skip:
    """The reason why no dead letter is stored for an advisory."""

    reason: str
    is_odd: bool = False
    """Whether another client must have published the advisory: its content is not a server's."""


@frozen(kw_only=True)
class Names:
    """The names of the streams and subjects for the dead letters of a stream or a consumer."""

    stream: str
    consumer: str | None
    """The consumer whose failed messages are stored; None means all consumers of the stream."""
    letters: str
    """The stream of dead letters."""
    failures: str
    """The stream that captures the advisories until they are processed."""
    prefix: str
    """The prefix of the subjects of dead letters."""

    @classmethod
    def of(
        cls,
        stream: str,
        consumer: str | None,
        letters: str | None,
        failures: str | None,
        prefix: str | None,
    ) -> Names:
        """Return the names. Defaults are derived from the names of the stream and the consumer.

        Raises `BadArgument` for an invalid name.
        """
        check_name(stream, "stream")
        owner = stream if consumer is None else f"{stream}-{check_name(consumer, 'consumer')}"
        prefix = prefix or f"dead.{owner}"
        check_filter(prefix)
        return cls(
            stream=stream,
            consumer=consumer,
            letters=check_name(letters or f"{owner}-dead", "stream"),
            failures=check_name(failures or f"{owner}-failures", "stream"),
            prefix=prefix,
        )

    def advisories(self) -> list[str]:
        """Return the subjects of the advisories."""
        place = f"{self.stream}.{self.consumer or '*'}"
        return [
            f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{place}",
            f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{place}",
        ]

    def failures_config(self, replicas: int | None) -> StreamConfig:
        """Return the configuration of the stream that captures advisories.

        An advisory is removed when it has been processed.
        """
        return StreamConfig(
            name=self.failures,
            description=f"Advisories of messages that consumers of {self.stream} gave up.",
            subjects=self.advisories(),
            retention="workqueue",
            num_replicas=replicas,
        )

    def keeper_config(self) -> ConsumerConfig:
        """Return the configuration of the consumer of the advisories."""
        return ConsumerConfig(
            durable_name=f"dead-letters-{self.stream}-{self.consumer or 'all'}",
            filter_subjects=self.advisories(),
            ack_policy="explicit",
        )

    def letters_config(self, replicas: int | None) -> StreamConfig:
        """Return the configuration of the stream of dead letters.

        The stream refuses a second message on a subject.
        """
        return StreamConfig(
            name=self.letters,
            description=f"Messages that consumers of {self.stream} gave up.",
            subjects=[f"{self.prefix}.>"],
            discard="new",
            max_msgs_per_subject=1,
            discard_new_per_subject=True,
            allow_direct=True,
            num_replicas=replicas,
        )

    def check_letters(self, config: StreamConfig) -> None:
        """Raise `BadArgument` unless an existing stream stores each dead letter exactly once."""
        wanted = {"discard": "new", "max_msgs_per_subject": 1, "discard_new_per_subject": True}
        for setting, value in wanted.items():
            found = getattr(config, setting)
            if found != value:
                raise BadArgument(
                    f"stream {self.letters} cannot store dead letters: {setting} is {found}, it"
                    f" must be {value}, so that none is stored twice; change it, or name another"
                    " stream"
                )
        if f"{self.prefix}.>" not in (config.subjects or []):
            raise BadArgument(
                f"stream {self.letters} cannot store dead letters: it must have the subject"
                f" {self.prefix}.>"
            )

    def subject(self, failure: Failure, created: Timestamp | None) -> str:
        """Return the subject of a dead letter, which is always the same for the same failure.

        The subject includes the creation time of the stream, because the sequences of a re-created
        stream begin with 1 again. `created` is None if the stream no longer exists.
        """
        place = f"{self.prefix}.{failure.consumer}"
        if created is None or is_of_earlier_stream(failure, created):
            return f"{place}.earlier-{failure.advisory}.{failure.stream_seq}"
        return f"{place}.{created.ns:x}.{failure.stream_seq}"


def second_subject(request: PublishRequest, failure: Failure, stored: Timestamp | None) -> str:
    """Return where to store a dead letter if another message occupies its subject.

    It is the same for the same failure. A client that knows neither the advisory nor the message
    cannot guess it.
    """
    return f"{request.subject}.{failure.advisory if stored is None else f'{stored.ns:x}'}"


def is_letter_of(found: StreamMessage, failure: Failure, original: StreamMessage | None) -> bool:
    """Return whether a message in the stream of dead letters is the letter of a failure.

    Any client may have stored it. If the original exists, the letter must be a copy of it.
    """
    try:
        letter = read_letter(found)
    except BadArgument:
        return False
    names = (letter.stream_name, letter.consumer_name, letter.stream_seq)
    if names != (failure.stream, failure.consumer, failure.stream_seq):
        return False
    return original is None or is_copy(letter, original)


def is_of_earlier_stream(failure: Failure, created: Timestamp) -> bool:
    """Return whether the stream was deleted and re-created since the failure."""
    return failure.time.ns + _SKEW < created.ns


def is_later_message(failure: Failure, stored: Timestamp) -> bool:
    """Return whether a message that was stored at `stored` is newer than the failure.

    If so, it is not the failed message, although it has the same sequence.
    """
    return stored.ns > failure.time.ns + _SKEW


def read_failure(names: Names, subject: str, data: bytes) -> Failure | Skip:
    """Return the failure that an advisory reports, or a `Skip` if it needs no dead letter.

    Any client with the permission may publish an advisory. So an advisory counts only if its
    content agrees with its subject, and if it is about the stream and the consumer of `names`.
    """
    try:
        record = decode(data)
    except DecodeError as error:
        return Skip(f"not an advisory: {str(error)!r:.400}", is_odd=True)
    if not isinstance(record, MaxDeliver | Terminated):
        return Skip(f"not a failure: {type(record).__name__}", is_odd=True)
    fault = _fault(names, subject, record)
    return Skip(fault, is_odd=True) if fault else _failure(record)


def _fault(names: Names, subject: str, record: MaxDeliver | Terminated) -> str:
    """Return what shows that a server did not publish an advisory about `names`; "" if nothing."""
    if subject != subject_of(record):
        return contradiction(subject, record) or f"published on {subject!r:.400}"
    try:
        check_name(record.consumer, "consumer")
    except BadArgument as error:
        return str(error)
    if not _fits_header(record.consumer):
        return f"the consumer name {record.consumer!r} contains NUL"
    if record.stream != names.stream or names.consumer not in (None, record.consumer):
        return f"about consumer {record.consumer!r} of stream {record.stream!r}"
    if not _ID.fullmatch(record.id):
        return f"the id {record.id!r:.60} is not one of a server"
    if not 0 < record.stream_seq < _MAX_NUMBER or not 0 <= record.deliveries < _MAX_NUMBER:
        return "its sequence or its number of deliveries is out of range"
    return ""


def _failure(record: MaxDeliver | Terminated) -> Failure | Skip:
    """Return the failure that an advisory reports, or the reason to store no dead letter for it."""
    if isinstance(record, MaxDeliver):
        cause: Cause = "max_deliver"
        reason = f"delivered {record.deliveries} times without an acknowledgement"
    else:
        cause, reason = "terminated", record.reason or ""
        if reason in SERVER_REASONS:
            return Skip(f"the server removed message {record.stream_seq}: {reason}")
        if reason.startswith(_STORED):
            return Skip(f"message {record.stream_seq} was stored by its worker")
    return Failure(
        stream=record.stream,
        consumer=record.consumer,
        stream_seq=record.stream_seq,
        deliveries=record.deliveries,
        cause=cause,
        reason=reason,
        time=record.timestamp,
        advisory=record.id,
    )


def stored_reason(reason: str) -> str:
    """Return the reason to terminate a message that is already stored as a dead letter."""
    return _STORED + _line(reason)


def _line(text: str) -> str:
    return " ".join(one_line(text).split())[:_TEXT]


# ---- the letter

_STREAM: Final = "Dead-Stream"
_CONSUMER: Final = "Dead-Consumer"
_SUBJECT: Final = "Dead-Subject"
_SEQUENCE: Final = "Dead-Sequence"
_STORED_AT: Final = "Dead-Stored-At"
_CAUSE: Final = "Dead-Cause"
_REASON: Final = "Dead-Reason"
_DELIVERIES: Final = "Dead-Deliveries"
_FAILED_AT: Final = "Dead-Failed-At"
_ADVISORY: Final = "Dead-Advisory"
_GONE: Final = "Dead-Gone"
_HEADERS: Final = "Dead-Headers"

# The headers of W3C Trace Context.
_TRACE: Final = ("traceparent", "tracestate")
# The names of headers that a server or a client of JetStream sets.
_RESERVED: Final = "Nats-"

# The part of a message to omit after an error: the message is too large, or its headers have more
# than 64 KiB.
_PART_OF: Final[dict[int | None, Part]] = {MESSAGE_TOO_LARGE: "data", HEADERS_TOO_LARGE: "headers"}


@frozen(kw_only=True)
class DeadLetter:
    """A message that could not be processed, with the cause and time of its failure.

    Args:
        place: Where the letter is stored.
    """

    seq: int
    """The sequence of the letter in the stream of dead letters."""
    stream_name: str
    """Name of the stream of the message."""
    consumer_name: str
    """Name of the consumer that gave the message up."""
    stream_seq: int
    """The sequence of the message in its stream."""
    subject: str
    """The subject of the message.

    Empty if the message no longer existed, or if the subject contains NUL or is not UTF-8.
    """
    stored_at: Timestamp | None
    """When the message was stored in its stream; None if the message no longer existed."""
    data: bytes
    """Payload of the message."""
    headers: Headers
    """The original headers of the message."""
    cause: str
    """`max_deliver`, `terminated` by a client, or `rejected` by a worker.

    A worker also rejects a message after its last attempt, or if its payload does not fit.
    """
    reason: str
    """Why it failed, in words; may be empty."""
    num_delivered: int
    """The number of deliveries when the message failed."""
    failed_at: Timestamp
    """When it failed."""
    missing: str
    """The reason why the letter lacks the message or a part of it, empty if it is complete."""
    # The subject of the letter in the stream of dead letters.
    _place: str = field(alias="place")


def letter_of_failure(
    names: Names,
    failure: Failure,
    created: Timestamp | None,
    original: StreamMessage | None,
    gone: str = "",
    without: frozenset[Part] = frozenset(),
) -> PublishRequest:
    """Return the dead letter to publish.

    `original` is None if the failed message no longer exists. `gone` is the reason if the letter
    lacks the message or the parts in `without`.
    """
    headers: dict[str, str | Iterable[str]] = {
        _STREAM: failure.stream,
        _CONSUMER: failure.consumer,
        _SEQUENCE: str(failure.stream_seq),
        _CAUSE: failure.cause,
        _REASON: _line(failure.reason),
        _DELIVERIES: str(failure.deliveries),
        _FAILED_AT: failure.time.rfc3339(),
    }
    if failure.advisory:
        headers[_ADVISORY] = failure.advisory
    if gone:
        headers[_GONE] = _line(gone)
    if original is not None:
        if _fits_header(original.subject):
            headers[_SUBJECT] = original.subject
        headers[_STORED_AT] = original.time.rfc3339()
        if original.headers and "headers" not in without:
            headers[_HEADERS] = _as_text(original.headers)
            headers.update(_trace_of(original.headers))
    return PublishRequest(
        subject=names.subject(failure, created),
        data=original.data if original is not None and "data" not in without else b"",
        headers=headers,
        msg_id=failure.advisory or None,
    )


def headers_of_misfit(
    stream: str, seq: int, subject: str, stored_at: Timestamp, original: Headers, reason: str
) -> dict[str, str | Iterable[str]]:
    """Return the headers of a dead letter for a message that does not match its schema."""
    headers: dict[str, str | Iterable[str]] = {
        _STREAM: stream,
        _SEQUENCE: str(seq),
        _STORED_AT: stored_at.rfc3339(),
        _CAUSE: "schema",
        _REASON: _line(reason),
    }
    if _fits_header(subject):
        headers[_SUBJECT] = subject
    if original:
        headers[_HEADERS] = _as_text(original)
        headers.update(_trace_of(original))
    return headers


def _fits_header(text: str) -> bool:
    # A server accepts subjects and names with NUL, or with bytes that are not UTF-8.
    return "\0" not in text and valid(text) == text


def _trace_of(headers: Headers) -> dict[str, str]:
    """Return the headers with which a letter stays in the trace of its message."""
    given = {name: headers.get(name, "") for name in _TRACE}
    return {name: text for name, text in given.items() if text and _fits_header(text)}


def _as_text(headers: Headers) -> str:
    # The original headers are stored as one text. If they were headers of the letter, Nats-…
    # headers would take effect, and nats-py would return only one value of a repeated header.
    pairs = [list(pair) for pair in headers.pairs]
    text = json.dumps(pairs, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Only escape sequences preserve bytes that are not UTF-8.
        return json.dumps(pairs, separators=(",", ":"))
    return text


def too_large(error: TwinstreamError, without: frozenset[Part]) -> Part | None:
    """Return the next part to omit from a letter after an error; None if omitting does not help.

    `without` are the parts that were omitted before.
    """
    part: Part | None = "data" if isinstance(error, BadArgument) else None
    if isinstance(error, JetStreamError):
        part = _PART_OF.get(error.err_code)
    if part == "data" and part in without:
        # The data was omitted before, so the headers are too large.
        part = "headers"
    return None if part in without else part


def read_letter(message: StreamMessage) -> DeadLetter:
    """Return the dead letter in a message; raises `BadArgument` for another message."""
    headers = message.headers
    try:
        stored_at = headers.get(_STORED_AT)
        return DeadLetter(
            seq=message.seq,
            stream_name=headers[_STREAM],
            consumer_name=headers[_CONSUMER],
            stream_seq=_number(headers[_SEQUENCE], 1),
            subject=headers.get(_SUBJECT, ""),
            stored_at=Timestamp.parse(stored_at) if stored_at is not None else None,
            data=message.data,
            headers=_original_headers(headers.get(_HEADERS)),
            cause=headers[_CAUSE],
            reason=headers[_REASON],
            num_delivered=_number(headers[_DELIVERIES], 0),
            failed_at=Timestamp.parse(headers[_FAILED_AT]),
            missing=headers.get(_GONE, ""),
            place=message.subject,
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadArgument(
            f"message {message.seq} of {message.stream_name} is not a dead letter: {error!r:.400}"
        ) from error


def _number(text: str, least: int) -> int:
    number = natural(text)
    if number is None or not least <= number < _MAX_NUMBER:
        raise ValueError(f"{text!r:.60} is not a number from {least}")
    return number


def _original_headers(text: str | None) -> Headers:
    if text is None:
        return Headers()
    pairs: list[tuple[str, str]] = []
    for pair in _listed(read_json(text)):
        match pair:
            case [str(name), str(value)]:
                pairs.append((name, value))
            case _:
                raise ValueError(f"{_HEADERS} contains {pair!r:.60}, not a name and a value")
    return Headers(pairs)


def _listed(loaded: object) -> list[object]:
    if not isinstance(loaded, list):
        raise ValueError(f"{_HEADERS} is not a list")
    return cast("list[object]", loaded)


def replay_request(letter: DeadLetter, subject: str, stream: str | None) -> PublishRequest:
    """Return a request to publish the message of a dead letter again on `subject`.

    Only `stream` stores it, if given. `Nats-…` headers of the original message are omitted, because
    they applied to its first publication. The message id names the letter, so that a replay that is
    repeated within the duplicate window is stored once. It contains a digest of the letter, so that
    a client that does not read the letter cannot publish a message with this id before.
    """
    kept: dict[str, list[str]] = {}
    for name, value in letter.headers.pairs:
        if not name.startswith(_RESERVED):
            kept.setdefault(name, []).append(value)
    return PublishRequest(
        subject=subject,
        data=letter.data,
        headers=kept or None,
        msg_id=f"replay of {letter._place} {letter.seq} {_digest(letter)}",
        expected_stream=stream,
    )


def _digest(letter: DeadLetter) -> str:
    times = [time.ns for time in (letter.failed_at, letter.stored_at) if time is not None]
    return sha256(f"{times} {letter.reason}".encode("utf-8", "replace")).hexdigest()[:16]


def check_complete(letter: DeadLetter) -> None:
    """Raise `BadArgument` if a dead letter lacks a part of its message."""
    if letter.missing:
        raise BadArgument(
            f"dead letter {letter.seq} cannot be replayed: {one_line(letter.missing)!r:.400}"
        )


def foreign_names(names: Names, letter: DeadLetter) -> str:
    """Return the stream or consumer of a dead letter that is not one of `names`, else empty."""
    if letter.stream_name != names.stream:
        return f"stream {letter.stream_name!r:.200}"
    if names.consumer not in (None, letter.consumer_name):
        return f"consumer {letter.consumer_name!r:.200}"
    return ""


def is_copy(letter: DeadLetter, original: StreamMessage) -> bool:
    """Return whether a message, read at the sequence of a dead letter, is its original.

    Any client may write a letter, and a re-created stream may have another message with the same
    sequence. `Nats-…` headers do not count, because a server adds some at a delivery.
    """
    subject = original.subject if _fits_header(original.subject) else ""
    if subject != letter.subject or original.time != letter.stored_at:
        return False
    # A letter with a reason in `missing` may lack the data, the headers, or both.
    lacks_data = letter.missing and not letter.data
    lacks_headers = letter.missing and not letter.headers
    same_data = lacks_data or letter.data == original.data
    return same_data and (lacks_headers or _own(letter.headers) == _own(original.headers))


def _own(headers: Headers) -> list[tuple[str, str]]:
    return [pair for pair in headers.pairs if not pair[0].startswith(_RESERVED)]
