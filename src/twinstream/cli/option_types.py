"""Types of options and arguments: numbers, sequences, durations like `7d`, sizes like `1KB`."""

from __future__ import annotations

from datetime import timedelta
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import click

from twinstream.core.publish.ttl import NEVER
from twinstream.models import Duration
from twinstream.models.units import parse_duration, parse_size

__all__ = [
    "LAST_SEQUENCE",
    "SEQUENCE",
    "Bytes",
    "Finite",
    "Life",
    "Seconds",
    "Span",
    "Type",
    "WholeSeconds",
]

# The base class of the types of this command.
if TYPE_CHECKING:
    Type: TypeAlias = click.ParamType[Any]
else:
    Type = click.ParamType  # not generic before click 8.4

LAST_SEQUENCE: Final = 2**64 - 1
SEQUENCE: Final = click.IntRange(1, LAST_SEQUENCE)
"""The type of an option for a stream sequence, from 1."""


class Finite(click.FloatRange):
    """The type of an option for a finite number (neither `nan` nor `inf`) within a range."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the value as a number, or raise a usage error."""
        found = float(super().convert(cast("float", value), param, ctx))
        if not isfinite(found):
            self.fail(f"{value} is not a finite number", param, ctx)
        return found


class Seconds(Finite):
    """The type of an option for a length of time: a number of seconds, or a duration like `1h30m`.

    The value is the number of seconds.
    """

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number of seconds, or raise a usage error."""
        ns = parse_duration(value) if isinstance(value, str) else None
        if ns is not None:
            return super().convert(ns / 1e9, param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            if isinstance(value, str) and not _is_number(value):
                self.fail(f"{value!r} is not a duration, such as 90s, 1h30m or 7d", param, ctx)
            raise


class Span(Type):
    """The type of an option for a duration with a unit, such as `1h30m` or `7d`.

    The value is a `Duration`. Zero is accepted only with `zero`.
    """

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self._least = 0 if zero else 1

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the duration, or raise a usage error."""
        if isinstance(value, timedelta):
            return value
        ns = parse_duration(str(value))
        if ns is None or ns < self._least:
            self.fail(f"{value!r} is not a duration, such as 90s, 1h30m or 7d", param, ctx)
        return Duration.from_ns(ns)


class Bytes(Type):
    """The type of an option for a size: a number of bytes, or a size such as `1KB` or `10MiB`.

    The value is the number of bytes. With a `min` of -1, -1 means that there is no limit.
    """

    name = "size"

    def __init__(self, min: int = 1, max: float = inf) -> None:
        self._min, self._max = min, max

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the number of bytes, or raise a usage error."""
        found = parse_size(str(value))
        if found is None and self._min < 0 and str(value) == "-1":
            return -1
        if found is None:
            self.fail(f"{value!r} is not a size, such as 512, 64KB or 1GB", param, ctx)
        if not self._min <= found <= self._max:
            bound = f"at least {self._min}" if found < self._min else f"at most {self._max}"
            self.fail(f"{value} is not a number of {bound} bytes", param, ctx)
        return found


class WholeSeconds(click.IntRange):
    """The type of an option for whole seconds: a number of them, or a duration such as `1h`."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number of seconds, or raise a usage error."""
        ns = parse_duration(value) if isinstance(value, str) else None
        if ns is not None:
            value, rest = divmod(ns, 1_000_000_000)
            if rest:
                self.fail("this is a number of whole seconds", param, ctx)
        return super().convert(cast("int", value), param, ctx)


class Life(WholeSeconds):
    """The type of an option for the TTL of a message: whole seconds from 1, or `never`."""

    name = "duration or never"

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number of seconds, or `never` unchanged."""
        return value if value == NEVER else super().convert(value, param, ctx)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
