"""Parse cron patterns of six fields, and compute their times as the server does (ADR-51, 2.14).

The fields are second, minute, hour, day of the month, month and day of the week (0 is Sunday).
A field is a comma-separated list of parts. A part is `*` or `?`, a number or name, or a range, each
with an optional step. If both day fields are restricted, a day has to match only one of them. A
step such as `*/2` is a restriction, too.

Source: nats-server `cron.go`. `Cron.next_after` takes the same steps in the same order as the
server, because the result depends on the order when clocks are changed.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Final

from attrs import frozen

from twinstream.errors import BadArgument

__all__ = ["WORDS", "Cron"]

WORDS: Final = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
"""The predefined words and their patterns."""

# A number without its leading zeros. Python refuses to read one with more than 4,300 digits.
_NUMBER: Final = re.compile(r"([+-]?)(?=\d)0*+(\d{0,9})", re.ASCII)
# One field of a pattern. U+001C to U+001F are white space for Python, but not for Go.
_WORD: Final = re.compile(r"[\S\x1c-\x1f]+")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
# The server searches until the end of the fifth year after the year in which the search begins.
_YEARS: Final = 5


@frozen
class _Field:
    name: str
    low: int
    high: int
    names: Mapping[str, int]


_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_WEEKDAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: Final = (
    _Field("second", 0, 59, {}),
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("day of week", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)


@frozen
class _Allowed:
    """The values that a field allows. `is_open` is true for `*` or `?` without a step."""

    values: frozenset[int]
    is_open: bool

    def __contains__(self, value: int) -> bool:
        return value in self.values


class Cron:
    """A parsed cron pattern. Raises `BadArgument` for a pattern that the server would refuse."""

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern
        fields = _WORD.findall(WORDS.get(pattern, pattern))
        if len(fields) != len(_FIELDS):
            hint = ": the first is the second, put 0 before the five" if len(fields) == 5 else ""
            raise BadArgument(f"cron {pattern!r} has {len(fields)} fields and needs 6{hint}")
        allowed = [_read(text, field, pattern) for text, field in zip(fields, _FIELDS, strict=True)]
        self._second, self._minute, self._hour = allowed[:3]
        self._day, self._month, self._weekday = allowed[3:]

    def next_after(self, at: int, zone: tzinfo = UTC) -> int:
        """Return the first time after `at` that matches, both in seconds since 1970.

        Raises `BadArgument` if no time within five years matches. The server refuses such a
        pattern.
        """
        walk = _Walk(at + 1, zone)
        last_year = walk.local().year + _YEARS
        while walk.local().year <= last_year:
            if self._settle(walk):
                return walk.at
        raise BadArgument(f"cron {self.pattern!r} does not fire within five years")

    def _settle(self, walk: _Walk) -> bool:
        """Advance to a time that matches all fields; return False if a field has wrapped around.

        After a wrap-around, larger fields may no longer match, so the caller calls this method
        again.
        """
        while walk.local().month not in self._month:
            walk.cut(2)
            walk.add_month()
            if walk.local().month == 1:
                return False
        while not self._is_day(walk.local()):
            walk.cut(3)
            walk.add_day()
            if walk.local().day == 1:
                return False
        while walk.local().hour not in self._hour:
            walk.cut(4)
            walk.at += _HOUR
            if walk.local().hour == 0:
                return False
        while walk.local().minute not in self._minute:
            walk.cut_to(_MINUTE)
            walk.at += _MINUTE
            if walk.local().minute == 0:
                return False
        while walk.local().second not in self._second:
            walk.cut_to(1)
            walk.at += 1
            if walk.local().second == 0:
                return False
        return True

    def _is_day(self, local: datetime) -> bool:
        in_month = local.day in self._day
        in_week = local.isoweekday() % 7 in self._weekday
        if self._day.is_open or self._weekday.is_open:
            return in_month and in_week
        return in_month or in_week


class _Walk:
    """A time, in seconds since 1970, that advances by the clock of a time zone."""

    def __init__(self, at: int, zone: tzinfo) -> None:
        self.at = at
        self._zone: Final = zone
        self._is_cut = False

    def local(self) -> datetime:
        return datetime.fromtimestamp(self.at, self._zone)

    def cut(self, kept: int) -> None:
        """Go back to the start of the month (`kept` 2), day (3) or hour (4).

        Only the first call of `cut` or `cut_to` has an effect. Later the smaller fields are already
        at their start.
        """
        if not self._is_cut:
            self._is_cut = True
            year, month, day, hour = self.local().timetuple()[:4]
            fields = (year, month, day if kept > 2 else 1, hour if kept > 3 else 0)
            self.at = self._moment(*fields)

    def cut_to(self, size: int) -> None:
        """Go back to a multiple of `size` seconds, if this is the first call (see `cut`)."""
        if not self._is_cut:
            self._is_cut = True
            self.at -= self.at % size

    def add_month(self) -> None:
        local = self.local()
        years, month = divmod(local.month, 12)
        self._to(local, local.year + years, month + 1, local.day)

    def add_day(self) -> None:
        local = self.local()
        self._to(local, local.year, local.month, local.day + 1)

    def _to(self, local: datetime, year: int, month: int, day: int) -> None:
        self.at = self._moment(year, month, day, local.hour, local.minute, local.second)

    def _moment(
        self, year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0
    ) -> int:
        """Return the time at which the clock shows these values.

        A day after the end of the month is a day of the next month. For a time that the clock skips
        or shows twice, the result is that of Go's `time.Date`.
        """
        first = timegm((year, month, 1, hour, minute, second))
        shown = first + (day - 1) * _DAY
        guess = shown - self._offset(shown)
        return shown - self._offset(guess)

    def _offset(self, at: int) -> int:
        offset = datetime.fromtimestamp(at, self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())


def _read(text: str, field: _Field, pattern: str) -> _Allowed:
    values: set[int] = set()
    is_open = False
    for part in filter(None, text.split(",")):
        numbers, star = _range(part, field, pattern)
        values.update(numbers)
        is_open |= star
    if not values:
        raise _fault(pattern, field, f"{text!r} allows nothing")
    return _Allowed(frozenset(values), is_open)


def _range(part: str, field: _Field, pattern: str) -> tuple[range, bool]:
    """Return the values of one part of a field, and whether it is `*` or `?` without a step."""
    ends, *steps = part.split("/")
    low, *highs = ends.split("-")
    if low in ("*", "?"):
        start, end, is_any = field.low, field.high, True
    else:
        start, is_any = _number(low, field, pattern), False
        end = _number(highs[0], field, pattern) if highs else start
        if len(highs) > 1:
            raise _fault(pattern, field, f"{part!r} has too many hyphens")
    if len(steps) > 1:
        raise _fault(pattern, field, f"{part!r} has too many slashes")
    step = _integer(steps[0], field, pattern) if steps else 1
    # A step after a single number, such as `5/10`, counts to the end of the field.
    if steps and not highs:
        end = field.high
    if not field.low <= start <= end <= field.high or step < 1:
        raise _fault(pattern, field, f"{part!r} is not within {field.low} to {field.high}")
    return range(start, end + 1, step), is_any and step == 1


def _number(text: str, field: _Field, pattern: str) -> int:
    named = field.names.get(text.lower())
    return _integer(text, field, pattern) if named is None else named


def _integer(text: str, field: _Field, pattern: str) -> int:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise _fault(pattern, field, f"{text!r} is not a number" + _or_a_name(field))
    return int(f"{found[1]}{found[2] or 0}")


def _or_a_name(field: _Field) -> str:
    return f" or one of {', '.join(field.names)}" if field.names else ""


def _fault(pattern: str, field: _Field, what: str) -> BadArgument:
    return BadArgument(f"cron {pattern!r}, {field.name}: {what}")
