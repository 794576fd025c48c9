"""Counters (ADR-49, server 2.12): format an increment, and parse a stored value.

Each subject of a counter stream is a counter. A published message contains an increment. The server
adds the increment to the counter, and stores a message with the new value, as decimal text of any
length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from attrs import frozen

from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.response import read_object
from twinstream.errors import BadArgument, InvalidResponse
from twinstream.models import StreamConfig, Timestamp
from twinstream.records.header_names import INCREMENT
from twinstream.records.headers import Headers

__all__ = ["Counter", "check_counters", "counter_of", "from_decimal", "to_decimal"]

_SOURCES: Final = "Nats-Counter-Sources"

# Python converts at most 4300 digits to a number at a time, or back. The server has no limit.
_DIGITS: Final = 4000
_CHUNK: Final = 10**_DIGITS


@frozen(kw_only=True)
class Counter:
    """The state of a counter, from one of its stored messages."""

    subject: str
    """Subject of the counter."""
    value: int
    """The total."""
    delta: int
    """The increment in this message, the last one of the counter."""
    sources: Mapping[str, Mapping[str, int]]
    """The last values of counters in source streams: by stream name, then by subject."""
    seq: int
    """Sequence of the message with this total."""
    time: Timestamp
    """When the message was stored."""


def check_counters(config: StreamConfig) -> None:
    """Raise `BadArgument` if the configuration of a stream does not allow counters."""
    if not config.allow_msg_counter:
        raise BadArgument(
            f"stream {config.name} has no counters: create one with allow_msg_counter=True, which"
            " cannot be changed later"
        )


def to_decimal(number: int) -> str:
    """Return a number of any size as the text of an increment, with its sign.

    Raises `BadArgument` unless `number` is an int.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadArgument(f"the increment of a counter must be an int, got {number!r}")
    rest, digits = abs(number), ""
    while rest >= _CHUNK:
        rest, low = divmod(rest, _CHUNK)
        digits = f"{low:0{_DIGITS}}{digits}"
    return f"{'-' if number < 0 else '+'}{rest}{digits}"


def from_decimal(text: str) -> int:
    """Parse decimal text of any length. Raises `ValueError` for other text."""
    digits = text.removeprefix("-" if text.startswith("-") else "+")
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"{text[:40]!r} is not a decimal number")
    number = 0
    for part in _parts(digits):
        number = number * 10 ** len(part) + int(part)
    return -number if text.startswith("-") else number


def _parts(digits: str) -> Iterator[str]:
    for start in range(0, len(digits), _DIGITS):
        yield digits[start : start + _DIGITS]


def counter_of(message: StreamMessage) -> Counter:
    """Return the counter in a stored message. Raises `InvalidResponse` if the message has none."""
    try:
        return Counter(
            subject=message.subject,
            value=from_decimal(_text(read_object(message.data).get("val"))),
            delta=from_decimal(message.headers.get(INCREMENT, "0")),
            sources=_sources(message.headers),
            seq=message.seq,
            time=message.time,
        )
    except ValueError as error:
        raise InvalidResponse(
            f"{message.stream_name}: message {message.seq} on {message.subject} is not a counter:"
            f" {error}"
        ) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its value is {value!r}")
    return value


def _sources(headers: Headers) -> dict[str, dict[str, int]]:
    """Return the values of the sources of a counter, by stream and subject."""
    if _SOURCES not in headers:
        return {}
    found: dict[str, dict[str, int]] = {}
    for stream, values in read_object(headers[_SOURCES].encode()).items():
        if not isinstance(values, dict):
            raise ValueError(f"its source {stream} has no values")
        by_subject = cast("dict[str, object]", values)
        found[stream] = {subject: from_decimal(_text(each)) for subject, each in by_subject.items()}
    return found
