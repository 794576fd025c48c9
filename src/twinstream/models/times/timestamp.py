"""Times with nanosecond precision.

The server writes RFC 3339 times with up to nine decimal places of a second; a `datetime` has six.
`Timestamp` is a `datetime` with nanoseconds. It also keeps the text that it was parsed from if the
server would write the time differently, so that encoding returns the same text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self, SupportsIndex, overload

from twinstream.models.times.duration import Duration

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _restored(kind: type[Timestamp], plain: datetime, nanosecond: int) -> Timestamp:
    """Return an unpickled timestamp."""
    return kind.of(plain).replace(nanosecond=nanosecond)


def _check_nanosecond(value: int) -> None:
    if not 0 <= value < 1_000:
        raise ValueError(f"nanosecond must be in 0..999, got {value}")


class Timestamp(datetime):
    """An aware `datetime` with nanoseconds.

    The fields of `datetime` are rounded down to the microsecond. `nanosecond` contains the
    remaining nanoseconds, 0 to 999.

    Args:
        year: The year.
        month: The month, from 1.
        day: The day of the month, from 1.
        hour: The hour.
        minute: The minute.
        second: The second.
        microsecond: The microsecond.
        tzinfo: The zone, which is required.
        fold: 1 for the second of two equal local times.
    """

    __slots__ = ("_nanosecond", "_text")

    _nanosecond: int
    _text: str | None

    def __new__(
        cls,
        year: SupportsIndex,
        month: SupportsIndex,
        day: SupportsIndex,
        hour: SupportsIndex = 0,
        minute: SupportsIndex = 0,
        second: SupportsIndex = 0,
        microsecond: SupportsIndex = 0,
        tzinfo: tzinfo | None = None,
        *,
        fold: int = 0,
        nanosecond: int = 0,
    ) -> Self:
        """Create a timestamp from the fields of `datetime`, and the remaining nanoseconds.

        Raises `ValueError` without `tzinfo`, or if `nanosecond` is not from 0 to 999.
        """
        if tzinfo is None:
            raise ValueError("a time needs a zone; pass tzinfo=datetime.UTC")
        _check_nanosecond(nanosecond)
        self = super().__new__(
            cls, year, month, day, hour, minute, second, microsecond, tzinfo, fold=fold
        )
        self._nanosecond = nanosecond
        self._text = None
        return self

    @classmethod
    def of(cls, value: datetime) -> Self:
        """Return a `datetime` as a `Timestamp`; a `Timestamp` is returned unchanged.

        Raises `ValueError` for a time without a zone, and `TypeError` for other values.

        Args:
            value: A time with a zone.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"expected a datetime with a zone, got {value!r}")
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no zone; add tzinfo=datetime.UTC or the one you mean")
        return cls(
            value.year,
            value.month,
            value.day,
            value.hour,
            value.minute,
            value.second,
            value.microsecond,
            value.tzinfo,
            fold=value.fold,
            nanosecond=value.nanosecond if isinstance(value, Timestamp) else 0,
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the time in `text`, which is in the server's notation.

        Servers accept times in the year 0, which `datetime` does not have. Such a time becomes the
        first nanosecond of the year 1, and `rfc3339` still returns `text`. Raises `ValueError` for
        invalid text.
        """
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a time such as 2026-01-31T08:00:00Z")
        if text.startswith("0000-"):
            return cls._of_year_0(text)
        fraction, zone = match.groups()
        base = datetime.fromisoformat(text)  # drops the nanoseconds
        # Skip the checks of `Timestamp.__new__`, because the fields are valid. This saves time for
        # responses with many times.
        self = datetime.__new__(
            cls,
            base.year,
            base.month,
            base.day,
            base.hour,
            base.minute,
            base.second,
            base.microsecond,
            base.tzinfo,
        )
        self._nanosecond = int(fraction[6:].ljust(3, "0")) if fraction else 0
        # Keep the text if the server would write the time differently.
        differs = (fraction and fraction[-1] == "0") or zone in ("+00:00", "-00:00")
        self._text = text if differs else None
        return self

    @classmethod
    def _of_year_0(cls, text: str) -> Self:
        """Return a time in the year 1 that keeps `text`, which is a time in the year 0."""
        datetime.fromisoformat(f"0004{text[4:]}")  # validates the text; 0 and 4 are leap years
        # One nanosecond after the start of the year 1, which the server uses for "never".
        self = cls(1, 1, 1, tzinfo=UTC, nanosecond=1)
        self._text = text
        return self

    @classmethod
    def from_ns(cls, ns: int) -> Self:
        """Return the time `ns` nanoseconds after 1970-01-01T00:00:00Z, in UTC."""
        micros, rest = divmod(ns, 1_000)
        self = cls.of(_EPOCH + timedelta(microseconds=micros))
        self._nanosecond = rest
        return self

    @property
    def nanosecond(self) -> int:
        """The nanoseconds after the microsecond, 0 to 999."""
        return self._nanosecond

    @property
    def ns(self) -> int:
        """The number of nanoseconds since 1970-01-01T00:00:00Z."""
        whole = datetime.__sub__(self, _EPOCH)
        seconds = whole.days * 86_400 + whole.seconds
        return seconds * 1_000_000_000 + whole.microseconds * 1_000 + self._nanosecond

    @property
    def is_zero(self) -> bool:
        """Whether the time is 0001-01-01T00:00:00Z, which the server uses for "never"."""
        return self.year == 1 and self.ns == _ZERO_NS

    def rfc3339(self) -> str:
        """Return the time in the server's notation.

        If the time was parsed from a text in another notation, return that text.
        """
        return self._text or self._canonical()

    def replace(self, *fields: Any, nanosecond: int | None = None, **named: Any) -> Self:
        """Return a copy with other values in some fields, like `datetime.replace`.

        Without the argument `nanosecond`, the nanoseconds do not change.

        Args:
            fields: New values from the year on, as of `datetime.replace`.
            nanosecond: The nanosecond of the second; None keeps it.
            named: New values by the names of the fields.
        """
        # Use a plain datetime, because `datetime.replace` of a Timestamp would create a Timestamp
        # without its own fields.
        plain = datetime.combine(self.date(), self.timetz())
        changed = self.of(plain.replace(*fields, **named))
        if nanosecond is not None:
            _check_nanosecond(nanosecond)
        changed._nanosecond = self._nanosecond if nanosecond is None else nanosecond
        return changed

    def astimezone(self, tz: tzinfo | None = None) -> Self:
        """Return the same time in another time zone.

        Args:
            tz: The zone; None means the local one.
        """
        # Use a plain datetime, because some zones add a timedelta to the time. With a Timestamp,
        # `Timestamp.__add__` would call this method again.
        moved = self.of(datetime.combine(self.date(), self.timetz()).astimezone(tz))
        moved._nanosecond = self._nanosecond
        return moved

    def _canonical(self) -> str:
        """Return the time as the server writes it: without zeros at the end of the fraction."""
        digits = f"{self.microsecond:06}{self._nanosecond:03}".rstrip("0")
        fraction = f".{digits}" if digits else ""
        whole = datetime.isoformat(self, timespec="seconds")
        zone = whole[19:]
        if len(zone) > len("+00:00"):
            # The notation has no seconds in the offset of a zone.
            return self.astimezone(UTC)._canonical()
        return f"{whole[:19]}{fraction}{'Z' if zone == '+00:00' else zone}"

    def __repr__(self) -> str:
        return f"Timestamp.parse({self.rfc3339()!r})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        if self._text is not None or self.tzinfo is UTC:
            return (type(self).parse, (self.rfc3339(),))
        # The text has the offset of the zone at this time, but not the zone itself.
        plain = datetime.combine(self.date(), self.timetz())
        return (_restored, (type(self), plain, self._nanosecond))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __hash__(self) -> int:
        # A time in whole microseconds can equal a datetime, so it has the same hash.
        return hash(self.ns) if self._nanosecond else datetime.__hash__(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, datetime):
            return NotImplemented
        return datetime.__eq__(self, other) and self._nanosecond == _rest(other)

    def __ne__(self, other: object) -> bool:
        # datetime.__ne__ ignores the nanoseconds.
        return not self == other

    def __lt__(self, other: datetime) -> bool:  # type: ignore[override]
        if not isinstance(other, datetime):
            return datetime.__lt__(self, other)  # refuses a date, and has no result for the rest
        if datetime.__eq__(self, other):
            return self._nanosecond < _rest(other)
        return datetime.__lt__(self, other)

    def __add__(self, other: timedelta) -> Self:
        return self._moved(Duration.of(other).ns)

    def __radd__(self, other: timedelta) -> Self:
        return self._moved(Duration.of(other).ns)

    @overload  # type: ignore[override]
    def __sub__(self, other: datetime) -> Duration: ...
    @overload
    def __sub__(self, other: timedelta) -> Self: ...
    def __sub__(self, other: datetime | timedelta) -> Duration | Self:
        if isinstance(other, timedelta):
            return self._moved(-Duration.of(other).ns)
        return Duration.from_ns(self.ns - self.of(other).ns)

    def __rsub__(self, other: datetime) -> Duration:
        return Duration.from_ns(self.of(other).ns - self.ns)

    def _moved(self, ns: int) -> Self:
        return self.from_ns(self.ns + ns).astimezone(self.tzinfo)

    def __le__(self, other: datetime) -> bool:  # type: ignore[override]
        return self == other or self < other

    def __gt__(self, other: datetime) -> bool:  # type: ignore[override]
        if not isinstance(other, datetime):
            return datetime.__gt__(self, other)
        return not self <= other

    def __ge__(self, other: datetime) -> bool:  # type: ignore[override]
        if not isinstance(other, datetime):
            return datetime.__ge__(self, other)
        return not self < other


def _rest(value: datetime) -> int:
    return value.nanosecond if isinstance(value, Timestamp) else 0


_ZERO_NS = Timestamp(1, 1, 1, tzinfo=UTC).ns
