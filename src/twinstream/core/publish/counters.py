"""Counters (ADR-49, server 2.12): what an addition carries and what a stored value says.

A subject of a counter stream is a counter. Publishing to it adds; the server writes the new value
into the stored message, as decimal text of any length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from attrs import frozen

from twinstream.core.wire.response import read_object
from twinstream.errors import BadAnswer, BadArgument
from twinstream.core.wire.header_names import INCREMENT
from twinstream.core.wire.headers import Headers
from twinstream.core.read.stream_message import StreamMessage
from twinstream.models import StreamConfig, Timestamp

__all__ = ["Counter", "check_counters", "counter_of", "from_decimal", "to_decimal"]

_SOURCES: Final = "Nats-Counter-Sources"

# Python turns at most 4300 digits into a number, and back, at a time; the server knows no limit.
_DIGITS: Final = 4000
_CHUNK: Final = 10**_DIGITS


@frozen(kw_only=True)
class Counter:
    """A counter as its last stored message tells."""

    subject: str
    value: int
    delta: int
    """What was added last."""
    sources: Mapping[str, Mapping[str, int]]
    """What came in from other streams: by stream, then by the subject there, the last value."""
    seq: int
    time: Timestamp
    """When it was stored."""


def check_counters(config: StreamConfig) -> None:
    """Raise `BadArgument` for a stream without counters."""
    if not config.allow_msg_counter:
        raise BadArgument(
            f"stream {config.name} has no counters: create one with allow_msg_counter=True, which"
            " cannot be changed later"
        )


def to_decimal(number: int) -> str:
    """Return a number of any size as the server writes increments: with its sign."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadArgument(f"a counter adds whole numbers, got {number!r}")
    rest, digits = abs(number), ""
    while rest >= _CHUNK:
        rest, low = divmod(rest, _CHUNK)
        digits = f"{low:0{_DIGITS}}{digits}"
    return f"{'-' if number < 0 else '+'}{rest}{digits}"


def from_decimal(text: str) -> int:
    """Return the number of any size in decimal text. Raises ValueError."""
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
    """Read a message of a counter stream; `BadAnswer` for one that is no counter's."""
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
        raise BadAnswer(
            f"{message.stream}: message {message.seq} on {message.subject} is no counter: {error}"
        ) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its value is {value!r}")
    return value


def _sources(headers: Headers) -> dict[str, dict[str, int]]:
    if _SOURCES not in headers:
        return {}
    found: dict[str, dict[str, int]] = {}
    for stream, values in read_object(headers[_SOURCES].encode()).items():
        if not isinstance(values, dict):
            raise ValueError(f"its source {stream} has no values")
        by_subject = cast("dict[str, object]", values)
        found[stream] = {subject: from_decimal(_text(each)) for subject, each in by_subject.items()}
    return found
