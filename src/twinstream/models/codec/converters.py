"""Converters for the arguments of model constructors.

With these converters, a constructor accepts a `timedelta` for a `Duration`, an aware `datetime` for
a `Timestamp`, and any iterable for a list. They are named functions, not lambdas, because type
checkers infer the type of a constructor's parameter from the converter's annotations.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp

T = TypeVar("T")


def duration(value: timedelta) -> Duration:
    """Return `value` as a `Duration`."""
    return Duration.of(value)


def optional_duration(value: timedelta | None) -> Duration | None:
    """Return `value` as a `Duration`; None stays None."""
    return None if value is None else Duration.of(value)


def optional_durations(value: Iterable[timedelta] | None) -> list[Duration] | None:
    """Return the values as a list of `Duration`; None stays None."""
    return None if value is None else [Duration.of(item) for item in value]


def timestamp(value: datetime) -> Timestamp:
    """Return `value`, which must have a time zone, as a `Timestamp`."""
    return Timestamp.of(value)


def optional_timestamp(value: datetime | None) -> Timestamp | None:
    """Return `value`, which must have a time zone, as a `Timestamp`; None stays None."""
    return None if value is None else Timestamp.of(value)


def optional_strings(value: Iterable[str] | None) -> list[str] | None:
    """Return the strings as a list; None stays None.

    Raise `TypeError` for a single string, because no caller intends a list of its characters.
    """
    if isinstance(value, str):
        raise TypeError(f"expected a list of texts, got the text {value!r}; put it into [ ]")
    return None if value is None else list(value)
