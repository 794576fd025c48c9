"""Dead letters: which failures become one, under which subject, and what it holds.

Source: nats-server 2.11 to 2.15. A consumer gives a message up in two ways, each told once as an
advisory: it was delivered `max_deliver` times without an acknowledgement, or somebody terminated
it. The server itself also terminates messages that limits, a purge or a delete take away while
they are being worked on; nobody failed at those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, Literal, cast

from attrs import frozen

from twinstream.core.wire.response import read_json
from twinstream.errors import BadArgument, JetStreamError, TwinstreamError
from twinstream.core.wire.headers import Headers
from twinstream.core.publish.request import PublishRequest
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.subjects import check_filter, check_name
from twinstream.core.wire.header_text import one_line
from twinstream.models import (
    ConsumerConfig,
    DecodeError,
    MaxDeliver,
    StreamConfig,
    Terminated,
    Timestamp,
    decode,
)
from twinstream.models.error_codes import HEADERS_TOO_LARGE, MESSAGE_TOO_LARGE

__all__ = [
    "Cause",
    "DeadLetter",
    "Failure",
    "Names",
    "Part",
    "Skip",
    "is_later_message",
    "is_of_earlier_stream",
    "letter_of_failure",
    "read_failure",
    "read_letter",
    "replay_request",
    "stored_reason",
    "too_large",
]

Part = Literal["data", "headers"]
"""What of a message a letter may have to leave out."""

Cause = Literal["max_deliver", "terminated", "rejected"]
"""Why a message was given up: delivered too often, terminated, or by a worker's own decision."""

_SERVER_REASONS: Final = frozenset(
    {"Unacknowledged message was deleted", "Message deleted by stream limits"}
)
# A worker that stores the dead letter itself, with the message at hand, says so in its reason.
_STORED: Final = "stored as a dead letter: "
# How far the clocks of two servers may be apart: one made the stream, one the advisory (ns).
_SKEW: Final = 1_000_000_000
_TEXT: Final = 2000


@frozen(kw_only=True)
class Failure:
    """A message that a consumer gave up."""

    stream: str
    consumer: str
    stream_seq: int
    deliveries: int
    cause: Cause
    reason: str
    time: Timestamp
    advisory: str = ""
    """Unique text of the advisory; empty for a worker's own decision."""


@frozen
class Skip:
    """An advisory that makes no dead letter, and why."""

    reason: str


@frozen(kw_only=True)
class Names:
    """The streams and subjects of the dead letters of a stream, or of one of its consumers."""

    stream: str
    consumer: str | None
    letters: str
    """The stream that holds the dead letters."""
    failures: str
    """The stream that captures the advisories until they are dealt with."""
    prefix: str
    """What the subjects of dead letters begin with."""

    @classmethod
    def of(
        cls,
        stream: str,
        consumer: str | None,
        letters: str | None,
        failures: str | None,
        prefix: str | None,
    ) -> Names:
        """Return the names, with defaults made from those of the stream and the consumer."""
        check_name(stream, "stream")
        whose = stream if consumer is None else f"{stream}-{check_name(consumer, 'consumer')}"
        prefix = prefix or f"dead.{whose}"
        check_filter(prefix)
        return cls(
            stream=stream,
            consumer=consumer,
            letters=check_name(letters or f"{whose}-dead", "stream"),
            failures=check_name(failures or f"{whose}-failures", "stream"),
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
        """Return the stream that captures advisories; each is removed when it is dealt with."""
        return StreamConfig(
            name=self.failures,
            description=f"Advisories of messages that consumers of {self.stream} gave up.",
            subjects=self.advisories(),
            retention="workqueue",
            num_replicas=replicas,
        )

    def keeper_config(self) -> ConsumerConfig:
        """Return the consumer that hands the advisories to whoever makes dead letters of them."""
        return ConsumerConfig(
            durable_name=f"dead-letters-{self.stream}-{self.consumer or 'all'}",
            filter_subjects=self.advisories(),
            ack_policy="explicit",
        )

    def letters_config(self, replicas: int | None) -> StreamConfig:
        """Return the stream of dead letters: one message a subject, a second one is refused."""
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
        """Raise `BadArgument` unless a stream that exists can hold each dead letter once."""
        wanted = {"discard": "new", "max_msgs_per_subject": 1, "discard_new_per_subject": True}
        for field, value in wanted.items():
            found = getattr(config, field)
            if found != value:
                raise BadArgument(
                    f"stream {self.letters} cannot hold dead letters: {field} is {found}, it must"
                    f" be {value}, so that none is stored twice; change it, or name another stream"
                )
        if f"{self.prefix}.>" not in (config.subjects or []):
            raise BadArgument(
                f"stream {self.letters} cannot hold dead letters: it must have the subject"
                f" {self.prefix}.>"
            )

    def subject(self, failure: Failure, created: Timestamp | None) -> str:
        """Return the subject of a dead letter: the same for the same failure, whoever makes it.

        A stream that is made anew counts from 1 again, so the time of its making takes part;
        None for a stream that is gone.
        """
        place = f"{self.prefix}.{failure.consumer}"
        if created is None or is_of_earlier_stream(failure, created):
            return f"{place}.earlier-{failure.advisory}.{failure.stream_seq}"
        return f"{place}.{created.ns:x}.{failure.stream_seq}"


def is_of_earlier_stream(failure: Failure, created: Timestamp) -> bool:
    """Tell whether the stream was deleted and made anew since the failure."""
    return failure.time.ns + _SKEW < created.ns


def is_later_message(failure: Failure, stored: Timestamp) -> bool:
    """Tell whether a message was stored after the failure, so that it is another one."""
    return stored.ns > failure.time.ns + _SKEW


def read_failure(data: bytes) -> Failure | Skip:
    """Return the failure that an advisory tells, or why it makes no dead letter."""
    try:
        record = decode(data)
    except DecodeError as error:
        return Skip(f"not an advisory: {error}")
    if isinstance(record, MaxDeliver):
        cause: Cause = "max_deliver"
        reason = f"delivered {record.deliveries} times without an acknowledgement"
    elif isinstance(record, Terminated):
        cause, reason = "terminated", record.reason or ""
        if reason in _SERVER_REASONS:
            return Skip(f"the server took message {record.stream_seq} away: {reason}")
        if reason.startswith(_STORED):
            return Skip(f"message {record.stream_seq} was stored by its worker")
    else:
        return Skip(f"not a failure: {type(record).__name__}")
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
    """Return the reason of a termination whose message is stored as a dead letter already."""
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

# What the server finds too large: a whole message, or headers of more than 64 KiB.
_PART_OF: Final[dict[int | None, Part]] = {MESSAGE_TOO_LARGE: "data", HEADERS_TOO_LARGE: "headers"}


@frozen(kw_only=True)
class DeadLetter:
    """A message that nobody could work on, and what became of it."""

    seq: int
    """Its own sequence, in the stream of dead letters."""
    stream: str
    consumer: str
    stream_seq: int
    """Where the message was, or still is, in its stream."""
    subject: str
    """Subject of the message, empty where it was gone."""
    stored_at: Timestamp | None
    """When the message was stored first."""
    data: bytes
    headers: Headers
    """Headers of the message, as they were."""
    cause: str
    """`max_deliver`, `terminated` or `rejected`."""
    reason: str
    deliveries: int
    failed_at: Timestamp
    gone: str
    """Why there is no message in here, only word of it or a part; empty where it is here."""
    place: str
    """The subject of the letter itself."""


def letter_of_failure(
    names: Names,
    failure: Failure,
    created: Timestamp | None,
    original: StreamMessage | None,
    gone: str = "",
    without: frozenset[Part] = frozenset(),
) -> PublishRequest:
    """Return the dead letter to publish; where it lacks the original or a part, it says why."""
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
        headers[_SUBJECT] = original.subject
        headers[_STORED_AT] = original.time.rfc3339()
        if original.headers and "headers" not in without:
            headers[_HEADERS] = _as_text(original.headers)
    return PublishRequest(
        subject=names.subject(failure, created),
        data=original.data if original is not None and "data" not in without else b"",
        headers=headers,
        msg_id=failure.advisory or None,
    )


def _as_text(headers: Headers) -> str:
    # As one text: Nats-… headers would act on the letter, and repeated ones be lost over nats-py,
    # which takes one value a name.
    pairs = [list(pair) for pair in headers.pairs]
    text = json.dumps(pairs, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # What was no UTF-8 must stay apart from what is: it survives escaped alone.
        return json.dumps(pairs, separators=(",", ":"))
    return text


def too_large(error: TwinstreamError, without: frozenset[Part]) -> Part | None:
    """Return what a letter must leave out that was refused with an error, beside `without`.

    None when that does not help.
    """
    part: Part | None = "data" if isinstance(error, BadArgument) else None
    if isinstance(error, JetStreamError):
        part = _PART_OF.get(error.err_code)
    if part == "data" and part in without:
        # What is left are the headers.
        part = "headers"
    return None if part in without else part


def read_letter(message: StreamMessage) -> DeadLetter:
    """Return the dead letter in a message; raises `BadArgument` for one that is none."""
    headers = message.headers
    try:
        stored_at = headers.get(_STORED_AT)
        return DeadLetter(
            seq=message.seq,
            stream=headers[_STREAM],
            consumer=headers[_CONSUMER],
            stream_seq=int(headers[_SEQUENCE]),
            subject=headers.get(_SUBJECT, ""),
            stored_at=Timestamp.parse(stored_at) if stored_at is not None else None,
            data=message.data,
            headers=_original_headers(headers.get(_HEADERS)),
            cause=headers[_CAUSE],
            reason=headers[_REASON],
            deliveries=int(headers[_DELIVERIES]),
            failed_at=Timestamp.parse(headers[_FAILED_AT]),
            gone=headers.get(_GONE, ""),
            place=message.subject,
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadArgument(
            f"message {message.seq} of {message.stream} is no dead letter: {error!r}"
        ) from error


def _original_headers(text: str | None) -> Headers:
    if text is None:
        return Headers()
    pairs: list[tuple[str, str]] = []
    for pair in _listed(read_json(text)):
        match pair:
            case [str(name), str(value)]:
                pairs.append((name, value))
            case _:
                raise ValueError(f"{_HEADERS} holds {pair!r:.60}, not a name and a value")
    return Headers(pairs)


def _listed(loaded: object) -> list[object]:
    if not isinstance(loaded, list):
        raise ValueError(f"{_HEADERS} is no list")
    return cast("list[object]", loaded)


def replay_request(letter: DeadLetter, subject: str | None = None) -> PublishRequest:
    """Return the message of a dead letter, to publish where it came from, or to `subject`.

    Its `Nats-…` headers stay behind: they were conditions of the first time. The message id is
    the letter's own, so that a repeat within the duplicate window is stored once.
    """
    if letter.gone:
        raise BadArgument(f"dead letter {letter.seq} cannot be replayed: {letter.gone}")
    kept: dict[str, list[str]] = {}
    for name, value in letter.headers.pairs:
        if not name.startswith("Nats-"):
            kept.setdefault(name, []).append(value)
    return PublishRequest(
        subject=subject or letter.subject,
        data=letter.data,
        headers=kept or None,
        msg_id=f"replay of {letter.place} {letter.seq}",
    )
