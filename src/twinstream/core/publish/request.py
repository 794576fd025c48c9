"""Publishing into a stream: a message, its conditions, and the headers that say them.

Source: ADR-22, ADR-42, ADR-43 and nats-server `processJetStreamMsg`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from attrs import field, frozen

from twinstream.errors import BadArgument, PublishFailures, TwinstreamError
from twinstream.core.wire.header_names import (
    EXPECTED_LAST_MSG_ID,
    EXPECTED_LAST_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ_SUBJECT,
    EXPECTED_STREAM,
    MSG_ID,
    ROLLUP,
    TTL,
)
from twinstream.core.wire.headers import Headers, HeaderValues, check_mapping, encode_headers
from twinstream.core.wire.subjects import check_filter
from twinstream.core.publish.ttl import Ttl, ttl_header

__all__ = [
    "LISTED",
    "PLAIN",
    "PublishFailure",
    "PublishRequest",
    "Publishable",
    "Rollup",
    "UnreadFailures",
    "as_request",
    "check_data",
    "check_message_id",
    "check_size",
    "publish_headers",
    "request_of",
    "several",
]

R = TypeVar("R")

_BLANKS: Final = " \t"
Rollup: TypeAlias = Literal["sub", "all"]
_ROLLUPS: Final = get_args(Rollup)


class PublishRequest(NamedTuple):
    """One message for `publish_many`: what `publish` takes, as a value.

    A named tuple, because one is made for every message: that takes 0.9 µs, a frozen class of attrs
    2.3 (Python 3.13). `_replace` returns a copy with other values.
    """

    subject: str
    data: bytes = b""
    headers: HeaderValues | None = None
    msg_id: str | None = None
    """Identity within the stream's duplicate window; no blanks at its ends."""
    expected_stream: str | None = None
    expected_last_seq: int | None = None
    expected_last_msg_id: str | None = None
    expected_last_subject_seq: int | None = None
    """0: the subject must hold nothing yet."""
    expected_last_subject_seq_subject: str | None = None
    """Another subject, or a filter, whose last sequence is meant (server 2.11)."""
    rollup: Rollup | None = None
    """`sub` removes what the subject held before, `all` what the stream did."""
    ttl: Ttl | None = None
    """Seconds until the server removes the message, whole ones from 1 up (server 2.11).

    `never` keeps it beyond the stream's `max_age`. A stream with `subject_delete_marker_ttl` raises
    a shorter one to that.
    """

    @property
    def is_repeatable(self) -> bool:
        """Tell whether sending it again cannot store it twice."""
        return (
            self.msg_id is not None
            or self.expected_last_seq is not None
            or self.expected_last_subject_seq is not None
            or self.expected_last_msg_id is not None
        )


request_of: Final[Callable[[tuple[Any, ...]], PublishRequest]] = partial(
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
    PublishRequest,
)
"""Return a request made of its fields, all of them in their order: 0.3 µs, by their names 1.7."""

PLAIN: Final = PublishRequest("")[2:]
"""What stands behind the subject and data of a message where there is nothing more to it."""

_NO_PROMISES: Final = PLAIN[1:]
"""What stands behind the headers of a message that asks nothing of the stream."""


Publishable = PublishRequest | tuple[str, bytes]
"""A message for `publish_many`: a request, or a pair of its subject and data.

A pair takes 0.05 µs to make, a request 0.9 (Python 3.13).
"""


def as_request(given: object) -> PublishRequest:
    """Return the request that was given, or that a pair means; raises `BadArgument`."""
    if isinstance(given, PublishRequest):
        return given
    pair = cast("tuple[str, bytes]", given)
    if isinstance(given, tuple) and len(pair) == 2:
        return PublishRequest(*pair)
    raise _no_message(pair)


def _no_message(given: object) -> BadArgument:
    return BadArgument(
        "a message is a PublishRequest or a pair of subject and data, got"
        f" {type(given).__name__}: {given!r:.60}"
    )


def several(requests: R) -> R:
    """Return what should be several requests; raises `BadArgument` for anything else.

    A request is a tuple, so going through it would say what it goes through, not what is wrong.
    """
    if isinstance(requests, PublishRequest):
        raise BadArgument(
            f"{requests.subject}: several requests are expected, got one: give a list of it"
        )
    given: object = requests
    if not isinstance(given, Iterable | AsyncIterable) and not hasattr(given, "__getitem__"):
        raise BadArgument(f"several requests are expected, as in a list, got {given!r}")
    return requests


LISTED: Final = 100
"""Failures that a `PublishFailures` lists; it counts the others."""


class UnreadFailures:
    """The failures of a bulk writer whose `error` the program has not read.

    Keeps the first `LISTED` and counts the others. Several threads may use it: each step is one
    atomic operation. With `is_wanted` off it stays empty.
    """

    __slots__ = ("_listed", "_unlisted", "is_wanted")

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted: Final = is_wanted
        # By identity: failures that are equal count each.
        self._listed: Final[dict[int, PublishFailure]] = {}
        self._unlisted: Final[deque[None]] = deque()

    def add(self, failure: PublishFailure) -> None:
        """Add a failure that the program has not got yet."""
        if not self.is_wanted:
            return
        if len(self._listed) < LISTED:
            self._listed[id(failure)] = failure
        else:
            self._unlisted.append(None)
        failure.enter(self)

    def discard(self, failure: PublishFailure) -> None:
        """Remove a failure whose error is being read."""
        # After `take` there may be none left.
        if self._listed.pop(id(failure), None) is None and self._unlisted:
            self._unlisted.pop()

    def take(self) -> PublishFailures | None:
        """Return the error for all that is unread, None if that is nothing, and forget them."""
        failures = list(self._listed.values())
        count = len(failures) + len(self._unlisted)
        self._listed.clear()
        self._unlisted.clear()
        return PublishFailures(failures[:LISTED], count) if count else None


@frozen(repr=False, match_args=False)
class PublishFailure:
    """A message of a bulk writer that was not acknowledged, and why.

    A program has looked at a failure once it reads `error`. The writer that handed it over raises
    `PublishFailures` in the end for those that nothing has looked at.
    """

    request: PublishRequest
    _error: TwinstreamError = field(alias="error")
    # At most one: the writer's list, until the error is read. Taken out by one atomic step.
    _unread: list[UnreadFailures] = field(init=False, factory=list[UnreadFailures], eq=False)

    __match_args__ = ("request", "error")

    @property
    def error(self) -> TwinstreamError:
        """Why the message was not acknowledged. Reading it counts as looking at the failure."""
        try:
            unread = self._unread.pop()
        except IndexError:
            pass
        else:
            unread.discard(self)
        return self._error

    def peek(self) -> TwinstreamError:
        """Return the error; this does not count as looking at the failure."""
        return self._error

    def enter(self, unread: UnreadFailures) -> None:
        """Note in which list it is until its error is read; the writer calls it."""
        # The frames of whoever read the answer refer to the writer, which could not be dropped.
        _forget_frames(self._error)
        self._unread.append(unread)

    def __repr__(self) -> str:
        return f"PublishFailure(request={self.request!r}, error={self._error!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (PublishFailure, (self.request, self._error))


def _forget_frames(error: BaseException) -> None:
    chain = [error]
    for each in chain:
        each.__traceback__ = None
        for other in (each.__cause__, each.__context__):
            if other is not None and other not in chain:
                chain.append(other)


def check_data(subject: str, data: object) -> None:
    """Raise `BadArgument` for what cannot be sent as it is, which exact `bytes` always can."""
    if isinstance(data, bytes | bytearray):
        return
    kind = type(data).__name__
    if isinstance(data, memoryview):
        view = cast("memoryview[int]", data)
        if view.itemsize == 1 and view.contiguous:
            return
    found = f"the text {data[:20]!r}: encode it" if isinstance(data, str) else kind
    raise BadArgument(f"{subject}: the data of a message must be bytes, got {found}")


def check_size(subject: bytes, size: int, allowed: int) -> None:
    """Raise `BadArgument` for a message, headers included, of more bytes than the server takes."""
    if size > allowed:
        raise BadArgument(
            f"{subject.decode()}: {size} bytes with headers, the server takes {allowed}"
        )


def publish_headers(request: PublishRequest) -> bytes:
    """Return the header block for a message and its promises, empty when there is none.

    Raises `BadArgument` for what no server could keep, and for data that is not bytes.
    """
    if type(request.data) is not bytes:
        check_data(request.subject, request.data)
    if request[3:] == _NO_PROMISES:
        return encode_headers(request.headers)
    promises = _promises(request)
    if not request.headers:
        return encode_headers(promises)
    given = request.headers
    check_mapping(given)
    doubled = promises.keys() & set(given)
    if doubled:
        raise BadArgument(f"header {min(doubled)} is given twice: as an argument and in headers")
    both: dict[str, str | Iterable[str]] = {name: _values(given, name) for name in given}
    return encode_headers(both | promises)


def _promises(request: PublishRequest) -> dict[str, str]:
    msg_id, stream, last_seq, last_msg_id, subject_seq, subject, rollup, ttl = request[3:]
    found: dict[str, str] = {}
    if msg_id is not None:
        found[MSG_ID] = check_message_id(msg_id)
    if stream is not None:
        found[EXPECTED_STREAM] = _text(stream, "expected_stream")
    if last_seq is not None:
        found[EXPECTED_LAST_SEQ] = _sequence(last_seq, "expected_last_seq")
    if last_msg_id is not None:
        found[EXPECTED_LAST_MSG_ID] = check_message_id(last_msg_id, "expected_last_msg_id")
    if subject_seq is not None:
        found[EXPECTED_LAST_SUBJECT_SEQ] = _sequence(subject_seq, "expected_last_subject_seq")
    if subject is not None:
        if subject_seq is None:
            raise BadArgument(
                "expected_last_subject_seq_subject says of which subject, so give the sequence"
                " too, as expected_last_subject_seq"
            )
        found[EXPECTED_LAST_SUBJECT_SEQ_SUBJECT] = check_filter(subject).decode()
    if rollup is not None:
        if rollup not in _ROLLUPS:
            raise BadArgument(f"rollup must be 'sub' or 'all', got {rollup!r}")
        found[ROLLUP] = rollup
    if ttl is not None:
        found[TTL] = ttl_header(ttl)
    return found


def check_message_id(value: str, name: str = "msg_id") -> str:
    """Return a message id; raises `BadArgument` for one that would be taken for another.

    Servers (2.11 to 2.15) leave out blanks in front of a header's value, and readers of headers
    those behind it, too: two ids would become one, and one of blanks none.
    """
    if _text(value, name).strip(_BLANKS) != value or not value:
        if not value.strip(_BLANKS):
            raise BadArgument(f"{name} may not be empty or blank: leave it out, got {value!r}")
        raise BadArgument(
            f"{name} may not begin or end with blanks, got {value!r}: the server leaves them out"
        )
    return value


def _text(value: str, name: str) -> str:
    # Several values, which a header may have, would be several promises.
    if not isinstance(value, str):
        raise BadArgument(f"{name} must be text, got {value!r}")
    return value


def _sequence(value: int, name: str) -> str:
    if type(value) is not int or value < 0:
        raise BadArgument(f"{name} must be a sequence, 0 for none yet, got {value!r}")
    return str(value)


def _values(headers: HeaderValues, name: str) -> str | Iterable[str]:
    return headers.get_all(name) if isinstance(headers, Headers) else headers[name]
