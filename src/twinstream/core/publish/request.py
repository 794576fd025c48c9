"""Messages to publish: their arguments and conditions, and the headers that express conditions.

Source: ADR-22, ADR-42, ADR-43 and nats-server `processJetStreamMsg`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from twinstream.core.base.digits import natural
from twinstream.core.publish.ttl import Ttl, ttl_header
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
from twinstream.errors import BadArgument, PublishFailures, TwinstreamError
from twinstream.models.records import field, frozen

__all__ = [
    "LISTED",
    "PLAIN",
    "PublishFailure",
    "PublishRequest",
    "Publishable",
    "Rollup",
    "UnreadFailures",
    "as_request",
    "check_condition",
    "check_data",
    "check_size",
    "publish_headers",
    "several",
]

R = TypeVar("R")

_BLANKS: Final = " \t"
Rollup: TypeAlias = Literal["sub", "all"]
_ROLLUPS: Final = get_args(Rollup)
_CONDITIONS: Final = frozenset(
    {
        MSG_ID,
        EXPECTED_STREAM,
        EXPECTED_LAST_SEQ,
        EXPECTED_LAST_MSG_ID,
        EXPECTED_LAST_SUBJECT_SEQ,
        EXPECTED_LAST_SUBJECT_SEQ_SUBJECT,
        ROLLUP,
        TTL,
    }
)


class PublishRequest(NamedTuple):
    """One message for `publish_many`: the arguments of `publish` as a value.

    It is a named tuple, because every message needs a request. Creating one takes 0.9 µs, while a
    frozen attrs class would take 2.3 µs (Python 3.13). `_replace` returns a copy with other values.
    """

    subject: str
    data: bytes = b""
    headers: HeaderValues | None = None
    msg_id: str | None = None
    """The id by which the stream detects duplicates. It must not begin or end with blanks."""
    expected_stream: str | None = None
    expected_last_seq: int | None = None
    expected_last_msg_id: str | None = None
    expected_last_subject_seq: int | None = None
    """The last sequence of the subject; 0 means that the stream must have no message on it."""
    expected_last_subject_seq_subject: str | None = None
    """The subject or filter whose last sequence is compared; None means `subject` (server 2.11)."""
    rollup: Rollup | None = None
    """`sub` removes earlier messages of the subject, `all` removes those of the whole stream."""
    ttl: Ttl | None = None
    """Seconds until the server removes the message, a whole number from 1 (server 2.11).

    `never` keeps the message beyond the stream's `max_age`. If the stream has
    `subject_delete_marker_ttl` and may store several messages per subject, the server raises a
    shorter `ttl` to that value.
    """

    @property
    def is_repeatable(self) -> bool:
        """Whether sending the message again cannot store it twice."""
        return (
            self.msg_id is not None
            or self.expected_last_seq is not None
            or self.expected_last_subject_seq is not None
            or self.expected_last_msg_id is not None
        )

    @property
    def expected_sequence(self) -> int | None:
        """The expected last sequence of the subject, else that of the stream, else None.

        Callers may also give an expected sequence as a header.
        """
        if self.expected_last_subject_seq is not None:
            return self.expected_last_subject_seq
        if self.expected_last_seq is not None or not self.headers:
            return self.expected_last_seq
        return _expected_in(self.headers)


PLAIN: Final = PublishRequest("")[2:]
"""The fields after `data` of a request without headers and conditions."""

_NO_CONDITIONS: Final = PLAIN[1:]
"""The fields after `headers` of a request without conditions."""


Publishable = PublishRequest | tuple[str, bytes]
"""A message for `publish_many`: a request, or a pair of its subject and data.

Creating a pair takes 0.05 µs, creating a request 0.9 µs (Python 3.13).
"""


def as_request(given: object) -> PublishRequest:
    """Return a request as it is, or a request for a pair; raises `BadArgument` for other values."""
    if isinstance(given, PublishRequest):
        return given
    pair = cast("tuple[str, bytes]", given)
    if isinstance(given, tuple) and len(pair) == 2:
        return PublishRequest(*pair)
    raise _no_message(pair)


def _no_message(given: object) -> BadArgument:
    return BadArgument(
        "a message must be a PublishRequest or a pair of subject and data, got"
        f" {type(given).__name__}: {given!r:.60}"
    )


def several(requests: R) -> R:
    """Return an iterable of requests as it is; raises `BadArgument` for other values.

    A single request is a tuple and so iterable. Without this check, the error would be about one of
    its fields.
    """
    if isinstance(requests, PublishRequest):
        raise BadArgument(
            f"{requests.subject}: expected several requests, got a single one: pass a list"
        )
    given: object = requests
    if not isinstance(given, Iterable | AsyncIterable) and not hasattr(given, "__getitem__"):
        raise BadArgument(f"expected several requests, such as a list, got {given!r}")
    return requests


LISTED: Final = 100
"""Maximum number of failures that a `PublishFailures` lists. Further failures are only counted."""


class UnreadFailures:
    """The failures of a bulk writer whose `error` the caller has not read.

    It keeps the first `LISTED` failures and counts the others. Several threads may use it, because
    each step is one atomic operation. If `is_wanted` is false, it stays empty.
    """

    __slots__ = ("_listed", "_unlisted", "is_wanted")

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted: Final = is_wanted
        # The keys are object ids, because equal failures count separately.
        self._listed: Final[dict[int, PublishFailure]] = {}
        self._unlisted: Final[deque[None]] = deque()

    def add(self, failure: PublishFailure) -> None:
        """Add a failure before the caller receives it."""
        if not self.is_wanted:
            return
        if len(self._listed) < LISTED:
            self._listed[id(failure)] = failure
        else:
            self._unlisted.append(None)
        failure.enter(self)

    def discard(self, failure: PublishFailure) -> None:
        """Remove a failure whose error the caller has read."""
        # After `take`, both collections may be empty.
        if self._listed.pop(id(failure), None) is None and self._unlisted:
            self._unlisted.pop()

    def take(self) -> PublishFailures | None:
        """Remove all failures and return the error for them, or None if there are none."""
        failures = list(self._listed.values())
        count = len(failures) + len(self._unlisted)
        self._listed.clear()
        self._unlisted.clear()
        return PublishFailures(failures[:LISTED], count) if count else None


@frozen(repr=False, match_args=False)
class PublishFailure:
    """A message of a bulk writer that was not acknowledged, and the error.

    The failure counts as handled once the caller reads `error`. If the caller does not read it, the
    writer raises `PublishFailures` at its end.
    """

    request: PublishRequest
    _error: TwinstreamError = field(alias="error")
    # Contains the writer's `UnreadFailures` until the error is read. It is a list, because the
    # pop() of a list is atomic.
    _unread: list[UnreadFailures] = field(init=False, factory=list[UnreadFailures], eq=False)

    __match_args__ = ("request", "error")

    @property
    def error(self) -> TwinstreamError:
        """The error of the message. Reading this property marks the failure as handled."""
        try:
            unread = self._unread.pop()
        except IndexError:
            pass
        else:
            unread.discard(self)
        return self._error

    def peek(self) -> TwinstreamError:
        """Return the error without marking the failure as handled."""
        return self._error

    def enter(self, unread: UnreadFailures) -> None:
        """Remember the collection from which this failure is removed when its error is read."""
        # The traceback of the error refers to the writer. It is removed, because it would keep the
        # writer from being garbage-collected.
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
    """Raise `BadArgument` unless data is bytes, a bytearray or a contiguous memoryview of bytes."""
    if isinstance(data, bytes | bytearray):
        return
    kind = type(data).__name__
    if isinstance(data, memoryview):
        view = cast("memoryview[int]", data)
        if view.itemsize == 1 and view.contiguous:
            return
    found = f"the text {data[:20]!r}: encode it" if isinstance(data, str) else kind
    if isinstance(data, dict | list):
        found = f"a {kind}: pass json.dumps(data).encode(), for example"
    raise BadArgument(f"{subject}: the data of a message must be bytes, got {found}")


def check_size(subject: bytes, size: int, allowed: int) -> None:
    """Raise `BadArgument` if `size`, the bytes of headers and payload, is above `allowed`."""
    if size > allowed:
        raise BadArgument(
            f"{subject.decode()}: {size} bytes with headers, the server accepts {allowed}:"
            " raise its max_payload, or store the content in an object store"
        )


def publish_headers(request: PublishRequest) -> bytes:
    """Return the header block for a message and its conditions, empty if there are none.

    Raises `BadArgument` for conditions that no server accepts, and for data that is not bytes.
    """
    if type(request.data) is not bytes:
        check_data(request.subject, request.data)
    given = request.headers
    if given:
        check_mapping(given)
        if not _CONDITIONS.isdisjoint(given):
            _check_conditions(given)
    if request[3:] == _NO_CONDITIONS:
        return encode_headers(given) if given else b""
    conditions = _condition_headers(request)
    if not given:
        return encode_headers(conditions)
    doubled = conditions.keys() & set(given)
    if doubled:
        raise BadArgument(f"header {min(doubled)} is given twice: as an argument and in headers")
    both: dict[str, str | Iterable[str]] = {name: _values(given, name) for name in given}
    return encode_headers(both | conditions)


def _check_conditions(headers: HeaderValues) -> None:
    """Check the headers for which a publish has an argument, as that argument is checked.

    The server ignores an empty condition and reads only the first value of a header. It would store
    the message without the guarantee that the publisher has asked for.
    """
    for name in sorted(_CONDITIONS.intersection(headers)):
        values = _values(headers, name)
        found = [values] if isinstance(values, str) else list(values)
        if len(found) != 1:
            raise BadArgument(f"header {name} must have a single value, got {found!r}")
        check_condition(found[0], f"header {name}")


def _condition_headers(request: PublishRequest) -> dict[str, str]:
    msg_id, stream, last_seq, last_msg_id, subject_seq, subject, rollup, ttl = request[3:]
    found: dict[str, str] = {}
    if msg_id is not None:
        found[MSG_ID] = check_condition(msg_id)
    if stream is not None:
        found[EXPECTED_STREAM] = check_condition(stream, "expected_stream")
    if last_seq is not None:
        found[EXPECTED_LAST_SEQ] = _sequence(last_seq, "expected_last_seq")
    if last_msg_id is not None:
        found[EXPECTED_LAST_MSG_ID] = check_condition(last_msg_id, "expected_last_msg_id")
    if subject_seq is not None:
        found[EXPECTED_LAST_SUBJECT_SEQ] = _sequence(subject_seq, "expected_last_subject_seq")
    if subject is not None:
        if subject_seq is None:
            raise BadArgument(
                "expected_last_subject_seq_subject needs the sequence of that subject: pass"
                " expected_last_subject_seq as well"
            )
        found[EXPECTED_LAST_SUBJECT_SEQ_SUBJECT] = check_filter(subject).decode()
    if rollup is not None:
        if rollup not in _ROLLUPS:
            raise BadArgument(f"rollup must be 'sub' or 'all', got {rollup!r}")
        found[ROLLUP] = rollup
    if ttl is not None:
        found[TTL] = ttl_header(ttl)
    return found


def check_condition(value: str, name: str = "msg_id") -> str:
    """Return the text of a condition, such as a message id.

    Raises `BadArgument` if the text is empty, or begins or ends with blanks. Servers (2.11 to 2.15)
    remove blanks before a header's value, and readers of headers also remove blanks after it. Two
    different ids could become equal, and a condition of blanks would become empty.
    """
    if _text(value, name).strip(_BLANKS) != value or not value:
        if not value.strip(_BLANKS):
            raise BadArgument(f"{name} must not be empty or blank, got {value!r}: omit it")
        raise BadArgument(
            f"{name} must not begin or end with blanks, got {value!r}: the server removes them"
        )
    return value


def _text(value: str, name: str) -> str:
    # A header may have a list of values, but a condition has a single value.
    if not isinstance(value, str):
        raise BadArgument(f"{name} must be text, got {value!r}")
    return value


def _sequence(value: int, name: str) -> str:
    if type(value) is not int or value < 0:
        raise BadArgument(f"{name} must be a sequence >= 0 (0 for no message), got {value!r}")
    return str(value)


def _expected_in(headers: HeaderValues) -> int | None:
    """Return the expected last sequence in the headers of a caller, or None if there is none.

    Only text counts, and not an iterable of values.
    """
    for name in (EXPECTED_LAST_SUBJECT_SEQ, EXPECTED_LAST_SEQ):
        value = headers.get(name)
        if isinstance(value, str):
            return natural(value)
    return None


def _values(headers: HeaderValues, name: str) -> str | Iterable[str]:
    return headers.get_all(name) if isinstance(headers, Headers) else headers[name]
