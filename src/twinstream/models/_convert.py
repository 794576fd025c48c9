"""What constructors of models accept beside the exact type.

``timedelta`` for durations, aware ``datetime`` for times, any iterable for lists. Named functions
rather than lambdas, because type checkers read a parameter's type off them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from twinstream.models.duration import Duration
from twinstream.models.timestamp import Timestamp

T = TypeVar("T")


def duration(value: timedelta) -> Duration:
    """Return the duration of a ``timedelta``."""
    return Duration.of(value)


def optional_duration(value: timedelta | None) -> Duration | None:
    """Return the duration of a ``timedelta``, or None."""
    return None if value is None else Duration.of(value)


def optional_durations(value: Iterable[timedelta] | None) -> list[Duration] | None:
    """Return a list of durations, or None."""
    return None if value is None else [Duration.of(item) for item in value]


def timestamp(value: datetime) -> Timestamp:
    """Return the timestamp of an aware ``datetime``."""
    return Timestamp.of(value)


def optional_timestamp(value: datetime | None) -> Timestamp | None:
    """Return the timestamp of an aware ``datetime``, or None."""
    return None if value is None else Timestamp.of(value)


def optional_strings(value: Iterable[str] | None) -> list[str] | None:
    """Return a list of texts, or None.

    A single text is refused: as an iterable it is a list of letters, which nobody means.
    """
    if isinstance(value, str):
        raise TypeError(f"expected a list of texts, got the text {value!r}; put it into [ ]")
    return None if value is None else list(value)
