"""Times as the server reads them, which is a little wider than RFC 3339."""

from __future__ import annotations

import re
from calendar import monthrange

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_DAYS_PER_400_YEARS = 146_097

GO_ZERO = 306 * 86_400 * 1_000_000_000
"""What ``go_time`` says of 0001-01-01T00:00:00Z, the server's "not set"."""


def go_time(text: str) -> int | None:
    """Return nanoseconds since 0000-03-01 in UTC, None for what the server does not take."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, zone_hour, zone_minute = match.groups()[6:]
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        return None
    # 2000 and 0 lie at the same place of the calendar's cycle; datetime has no year 0.
    if not 1 <= day <= monthrange(2000 if year == 0 else year, month)[1]:
        return None
    offset = 0
    if sign:
        if int(zone_hour) > 24 or int(zone_minute) > 60:
            return None
        offset = (int(zone_hour) * 60 + int(zone_minute)) * (60 if sign == "+" else -60)
    seconds = _days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0")[:9])


def go_time_text(text: str) -> str:
    """Return a time that the server takes in the notation in which it answers."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    year, month, day, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups()
    digits = (fraction or "")[:9].rstrip("0")
    hours, minutes = divmod(int(zone_hour or 0) * 60 + int(zone_minute or 0), 60)  # 60 is a minute
    zone = f"{sign}{hours:02}:{minutes:02}" if hours or minutes else "Z"
    rest = f".{digits}" if digits else ""
    return f"{year}-{month}-{day}T{hour:0>2}:{minute}:{second}{rest}{zone}"


def has_zero_offset(text: str | None) -> bool:
    """Whether a time has the zone Z written as an offset, which a running server tells from Z."""
    return text is not None and text.endswith(("+00:00", "-00:00"))


def _days(year: int, month: int, day: int) -> int:
    """Return the days since the first of March in the year 0."""
    # Counted from March, so that the leap day is the last of its year.
    shifted = year if month > 2 else year - 1
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _DAYS_PER_400_YEARS + of_era * 365 + of_era // 4 - of_era // 100 + of_year
