"""Durations with nanosecond precision.

The server's durations are in nanoseconds; a `timedelta` has only microseconds. `Duration` is a
`timedelta` with nanoseconds, so that a setting can be read and written without a change.

It is no integer with a property: `config.ack_wait == timedelta(seconds=30)` would be False,
`ack_wait + 1` would add a nanosecond, and a time plus `ack_wait` would be an error.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Self

_NS_PER_US = 1_000


def _ns_of(value: timedelta) -> int:
    """Return the nanoseconds of any `timedelta`, without converting to float."""
    if isinstance(value, Duration):
        return value.ns
    return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * _NS_PER_US


class Duration(timedelta):
    """A `timedelta` with nanoseconds.

    The constructor accepts the arguments of `timedelta`, and `nanoseconds`. The fields of
    `timedelta` are rounded down to the microsecond; `ns` is exact.

    Args:
        days: Days.
        seconds: Seconds.
        microseconds: Microseconds.
        milliseconds: Milliseconds.
        minutes: Minutes.
        hours: Hours.
        weeks: Weeks.
    """

    __slots__ = ("_ns",)

    _ns: int

    def __new__(
        cls,
        days: float = 0,
        seconds: float = 0,
        microseconds: float = 0,
        milliseconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        weeks: float = 0,
        *,
        nanoseconds: int = 0,
    ) -> Self:
        """Create the sum of all arguments; `nanoseconds` must be an integer."""
        base = timedelta(days, seconds, microseconds, milliseconds, minutes, hours, weeks)
        return cls.from_ns(_ns_of(base) + nanoseconds)

    @classmethod
    def from_ns(cls, ns: int) -> Self:
        """Return the duration of `ns` nanoseconds."""
        self = super().__new__(cls, microseconds=ns // _NS_PER_US)
        self._ns = ns
        return self

    @classmethod
    def of(cls, value: timedelta) -> Self:
        """Return a `timedelta` as a `Duration`; a `Duration` is returned unchanged.

        Raises `TypeError` for other values.

        Args:
            value: Any `timedelta`.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance]
            return cls.from_ns(_ns_of(value))
        raise TypeError(f"expected a timedelta, got {value!r}; write timedelta(seconds=...)")

    @property
    def ns(self) -> int:
        """The total length in nanoseconds."""
        return self._ns

    def __repr__(self) -> str:
        rest = self._ns % _NS_PER_US
        whole = repr(timedelta(microseconds=self._ns // _NS_PER_US)).partition("(")[2][:-1]
        parts = [part for part in (whole if whole != "0" else "",) if part]
        if rest:
            parts.append(f"nanoseconds={rest}")
        return f"Duration({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self).from_ns, (self._ns,))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __hash__(self) -> int:
        # A duration in whole microseconds can equal a timedelta, so it has the same hash.
        return hash(self._ns) if self._ns % _NS_PER_US else timedelta.__hash__(self)

    def __bool__(self) -> bool:
        return self._ns != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, timedelta):
            return NotImplemented
        return self._ns == _ns_of(other)

    def __ne__(self, other: object) -> bool:
        # timedelta.__ne__ ignores the nanoseconds.
        return not self == other

    def __lt__(self, other: timedelta) -> bool:
        return self._ns < _ns_of(other) if isinstance(other, timedelta) else NotImplemented

    def __le__(self, other: timedelta) -> bool:
        return self._ns <= _ns_of(other) if isinstance(other, timedelta) else NotImplemented

    def __gt__(self, other: timedelta) -> bool:
        return self._ns > _ns_of(other) if isinstance(other, timedelta) else NotImplemented

    def __ge__(self, other: timedelta) -> bool:
        return self._ns >= _ns_of(other) if isinstance(other, timedelta) else NotImplemented

    def __neg__(self) -> Self:
        return self.from_ns(-self._ns)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self.from_ns(abs(self._ns))

    def __add__(self, other: timedelta) -> Self:
        if not isinstance(other, timedelta):
            return NotImplemented
        return self.from_ns(self._ns + _ns_of(other))

    def __radd__(self, other: timedelta) -> Self:
        return self + other

    def __sub__(self, other: timedelta) -> Self:
        return self + -other if isinstance(other, timedelta) else NotImplemented

    def __rsub__(self, other: timedelta) -> Self:
        return -self + other if isinstance(other, timedelta) else NotImplemented

    def __mul__(self, factor: float) -> Self:
        """Return the product, exact for an integer, else rounded to the nanosecond."""
        return self.from_ns(_scaled(self._ns, factor))

    def __rmul__(self, factor: float) -> Self:
        return self.from_ns(_scaled(self._ns, factor))


def _scaled(ns: int, factor: float) -> int:
    if isinstance(factor, int):
        return ns * factor
    # A float product would lose digits of the duration, so multiply by the float's exact fraction.
    numerator, denominator = factor.as_integer_ratio()
    return round_half_even(ns * numerator, denominator)


def round_half_even(numerator: int, denominator: int) -> int:
    """Return the quotient rounded to the nearest integer, as `timedelta` rounds.

    If two integers are equally near, the result is the even one.
    """
    quotient, rest = divmod(numerator, denominator)
    double = 2 * rest
    return quotient + (double > denominator or (double == denominator and quotient % 2 == 1))
