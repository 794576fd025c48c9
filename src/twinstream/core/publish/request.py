"""Checks of messages to publish, and the headers that express their conditions.

Source: ADR-22, ADR-42, ADR-43 and nats-server `processJetStreamMsg`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Final, TypeVar, cast, get_args

from twinstream.core.publish.ttl import ttl_header
from twinstream.core.wire.headers import check_mapping, encode_headers
from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument
from twinstream.records.header_names import (
    EXPECTED_LAST_MSG_ID,
    EXPECTED_LAST_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ,
    EXPECTED_LAST_SUBJECT_SEQ_SUBJECT,
    EXPECTED_STREAM,
    MSG_ID,
    ROLLUP,
    TTL,
)
from twinstream.records.headers import Headers, HeaderValues
from twinstream.records.publish_request import PublishRequest, Rollup

__all__ = [
    "as_request",
    "check_condition",
    "check_data",
    "check_size",
    "publish_headers",
    "several",
]

R = TypeVar("R")

_BLANKS: Final = " \t"
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


# The fields of a request from `msg_id` on are conditions.
_CONDITION_FIELDS: Final = slice(PublishRequest._fields.index("msg_id"), None)
_NO_CONDITIONS: Final = PublishRequest("")[_CONDITION_FIELDS]


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

    Raises `BadArgument` for conditions that no server accepts, for data that is not bytes, and for
    a subject that is not text.
    """
    if type(request.data) is not bytes:
        check_data(request.subject, request.data)
    if type(request.subject) is not str:
        check_filter(request.subject)
    given = request.headers
    if given:
        check_mapping(given)
        if not _CONDITIONS.isdisjoint(given):
            _check_conditions(given)
    if request[_CONDITION_FIELDS] == _NO_CONDITIONS:
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
    """Return the headers for the id, the conditions, the rollup and the TTL of a request.

    Raises `BadArgument` for a value that the server would refuse.
    """
    found: dict[str, str] = {}
    if request.msg_id is not None:
        found[MSG_ID] = check_condition(request.msg_id)
    if request.expected_stream is not None:
        found[EXPECTED_STREAM] = check_condition(request.expected_stream, "expected_stream")
    if request.expected_last_seq is not None:
        found[EXPECTED_LAST_SEQ] = _sequence(request.expected_last_seq, "expected_last_seq")
    if request.expected_last_msg_id is not None:
        last_id = check_condition(request.expected_last_msg_id, "expected_last_msg_id")
        found[EXPECTED_LAST_MSG_ID] = last_id
    subject_seq = request.expected_last_subject_seq
    subject = request.expected_last_subject_seq_subject
    if subject_seq is not None:
        found[EXPECTED_LAST_SUBJECT_SEQ] = _sequence(subject_seq, "expected_last_subject_seq")
    if subject is not None:
        if subject_seq is None:
            raise BadArgument(
                "expected_last_subject_seq_subject needs the sequence of that subject: pass"
                " expected_last_subject_seq as well"
            )
        found[EXPECTED_LAST_SUBJECT_SEQ_SUBJECT] = check_filter(subject).decode()
    if request.rollup is not None:
        if request.rollup not in _ROLLUPS:
            raise BadArgument(f"rollup must be 'sub' or 'all', got {request.rollup!r}")
        found[ROLLUP] = request.rollup
    if request.ttl is not None:
        found[TTL] = ttl_header(request.ttl)
    return found


def check_condition(value: str, name: str = "msg_id") -> str:
    """Return the text of a condition, such as a message id.

    Raises `BadArgument` if the text is empty, or begins or ends with blanks. Servers remove blanks
    before a header's value, and readers of headers also remove blanks after it. Two different ids
    could become equal, and a condition of blanks would become empty.
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


def _values(headers: HeaderValues, name: str) -> str | Iterable[str]:
    return headers.get_all(name) if isinstance(headers, Headers) else headers[name]
