"""A point in time in an option: a time, or so long before the read is planned."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, TypeAlias

from attrs import frozen

from twinstream.models import Timestamp
from twinstream.spark.client.options_map import duration_seconds
from twinstream.spark.errors import OptionError

__all__ = ["Ago", "Moment", "is_before", "parse_moment"]

_MOST: Final = 1000 * 365 * 86_400


@frozen
class Ago:
    """A number of seconds before now. `text` is the option's value, for example `-7d`."""

    text: str
    seconds: float

    def before(self, now: str | None) -> Timestamp:
        """Return the time that is so long before `now` (RFC 3339).

        `now` is the clock of the stream's leader, which also sets the times of messages. If it is
        `None`, the clock of this machine is used.
        """
        at = Timestamp.parse(now) if now else Timestamp.of(datetime.now(UTC))
        return Timestamp.from_ns(at.ns - int(self.seconds * 1_000_000_000))

    def rfc3339(self) -> str:
        """Return the text of the option."""
        return self.text


Moment: TypeAlias = Timestamp | Ago
"""A time, or a time before the read is planned."""


def is_before(one: Moment, other: Moment) -> bool:
    """Return whether `one` is certainly before `other`.

    A time and a time before now are not compared, because the result changes.
    """
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return one < other
    if isinstance(one, Ago) and isinstance(other, Ago):
        return one.seconds > other.seconds
    return False


def parse_moment(option: str, text: str) -> Moment:
    """Return the point in time of an option.

    Raises `OptionError` if the text is neither milliseconds since 1970, an RFC 3339 time nor a
    duration with a minus.
    """
    try:
        if text.startswith("-"):
            return Ago(text, _seconds(text[1:]))
        if text.isascii() and text.isdigit():
            return Timestamp.from_ns(int(text) * 1_000_000)
        return Timestamp.parse(text)
    except (ValueError, OverflowError) as error:
        raise OptionError(
            option,
            "must be milliseconds since 1970, a time as 2026-01-31T12:00:00Z, or a time before now"
            f" as -7d, -12h or -30m, got {text!r} ({error})",
        ) from error


def _seconds(text: str) -> float:
    seconds = duration_seconds(text)
    if seconds is None or seconds > _MOST:
        raise ValueError("a number up to 1000 years with the unit d, h, m, s or ms follows -")
    return seconds
