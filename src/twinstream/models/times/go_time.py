"""Parse times as the server does. The server accepts some times that RFC 3339 does not allow."""

from __future__ import annotations

import re
from calendar import monthrange

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_DAYS_PER_400_YEARS = 146_097

GO_ZERO = 306 * 86_400 * 1_000_000_000
"""The result of `go_time` for 0001-01-01T00:00:00Z, which means "not set" to the server."""


def go_time(text: str) -> int | None:
    """Return the nanoseconds from 0000-03-01 in UTC to the time in `text`.

    Return None if the server refuses the time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, zone_hour, zone_minute = match.groups()[6:]
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        return None
    # Python's calendar has no year 0. The months of year 0 are as long as those of 2000.
    if not 1 <= day <= monthrange(2000 if year == 0 else year, month)[1]:
        return None
    offset = 0
    if sign:
        # Go accepts a zone of 24 hours and of 60 minutes, which other notations exclude.
        if int(zone_hour) > 24 or int(zone_minute) > 60:
            return None
        offset = (int(zone_hour) * 60 + int(zone_minute)) * (60 if sign == "+" else -60)
    seconds = _days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0")[:9])


def go_time_text(text: str) -> str:
    """Return the time in `text` in the notation that the server uses in its responses.

    Raises `ValueError` for other text.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    year, month, day, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups()
    digits = (fraction or "")[:9].rstrip("0")
    # The server accepts 60 as the minutes of a zone.
    hours, minutes = divmod(int(zone_hour or 0) * 60 + int(zone_minute or 0), 60)
    zone = f"{sign}{hours:02}:{minutes:02}" if hours or minutes else "Z"
    rest = f".{digits}" if digits else ""
    return f"{year}-{month}-{day}T{hour:0>2}:{minute}:{second}{rest}{zone}"


def has_zero_offset(text: str | None) -> bool:
    """Whether a time ends in `+00:00` or `-00:00`, which servers do not treat as equal to `Z`."""
    return text is not None and text.endswith(("+00:00", "-00:00"))


def _days(year: int, month: int, day: int) -> int:
    """Return the number of days from 0000-03-01 to the date."""
    # Years start in March, so that the leap day is the last day of its year.
    shifted = year if month > 2 else year - 1
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _DAYS_PER_400_YEARS + of_era * 365 + of_era // 4 - of_era // 100 + of_year
