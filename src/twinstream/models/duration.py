"""Lengths of time, exact in nanoseconds.

The server counts nanoseconds where ``timedelta`` counts microseconds. ``Duration`` is a
``timedelta`` that keeps the rest, so that reading a setting and writing it back changes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Self

_NS_PER_US = 1_000


def _ns_of(value: timedelta) -> int:
    """Return the nanoseconds of any ``timedelta``, without a detour over floats."""
    if isinstance(value, Duration):
        return value.ns
    return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * _NS_PER_US


class Duration(timedelta):
    """A ``timedelta`` with nanoseconds.

    Takes the arguments of ``timedelta`` and ``nanoseconds``. The fields that ``timedelta`` has
    are rounded down to the microsecond; ``ns`` is exact.
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
        """Add up the parts; ``nanoseconds`` must be whole."""
        base = timedelta(days, seconds, microseconds, milliseconds, minutes, hours, weeks)
        return cls.from_ns(_ns_of(base) + nanoseconds)

    @classmethod
    def from_ns(cls, ns: int) -> Self:
        """Return the duration of ``ns`` nanoseconds."""
        self = super().__new__(cls, microseconds=ns // _NS_PER_US)
        self._ns = ns
        return self

    @classmethod
    def of(cls, value: timedelta) -> Self:
        """Return ``value`` as a duration; itself if it is one."""
        if isinstance(value, cls):
            return value
        if isinstance(value, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance]
            return cls.from_ns(_ns_of(value))
        raise TypeError(f"expected a timedelta, got {value!r}; write timedelta(seconds=...)")

    @property
    def ns(self) -> int:
        """The whole length in nanoseconds."""
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
        # Equal to a plain timedelta's hash where the two can be equal.
        return hash(self._ns) if self._ns % _NS_PER_US else timedelta.__hash__(self)

    def __bool__(self) -> bool:
        return self._ns != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, timedelta):
            return NotImplemented
        return self._ns == _ns_of(other)

    def __ne__(self, other: object) -> bool:
        # timedelta has one of its own, which would not see the nanoseconds.
        return not self == other

    def __lt__(self, other: timedelta) -> bool:
        return self._ns < _ns_of(other)

    def __le__(self, other: timedelta) -> bool:
        return self._ns <= _ns_of(other)

    def __gt__(self, other: timedelta) -> bool:
        return self._ns > _ns_of(other)

    def __ge__(self, other: timedelta) -> bool:
        return self._ns >= _ns_of(other)

    def __neg__(self) -> Self:
        return self.from_ns(-self._ns)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self.from_ns(abs(self._ns))

    def __add__(self, other: timedelta) -> Self:
        return self.from_ns(self._ns + _ns_of(other))

    def __radd__(self, other: timedelta) -> Self:
        return self.from_ns(_ns_of(other) + self._ns)

    def __sub__(self, other: timedelta) -> Self:
        return self.from_ns(self._ns - _ns_of(other))

    def __rsub__(self, other: timedelta) -> Self:
        return self.from_ns(_ns_of(other) - self._ns)

    def __mul__(self, factor: float) -> Self:
        """Multiply; exact by whole numbers, to the nanosecond otherwise."""
        return self.from_ns(_scaled(self._ns, factor))

    def __rmul__(self, factor: float) -> Self:
        return self.from_ns(_scaled(self._ns, factor))


def _scaled(ns: int, factor: float) -> int:
    if isinstance(factor, int):
        return ns * factor
    # A float holds fewer digits than a duration has; its exact value is a fraction.
    numerator, denominator = factor.as_integer_ratio()
    return round_half_even(ns * numerator, denominator)


def round_half_even(numerator: int, denominator: int) -> int:
    """Divide and round to the nearest whole number, as ``timedelta`` does."""
    quotient, rest = divmod(numerator, denominator)
    double = 2 * rest
    return quotient + (double > denominator or (double == denominator and quotient % 2 == 1))
