"""Types of options and arguments: numbers, sequences, and durations such as `1h30m`."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, cast

import click

from twinstream.core.publish.ttl import NEVER
from twinstream.models.times.go_duration import parse_go_duration

__all__ = ["LAST_SEQUENCE", "SEQUENCE", "Finite", "Life", "length"]

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


class Life(click.IntRange):
    """The type of an option for the TTL of a message: seconds as an integer from 1, or `never`."""

    name = "seconds or never"

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the value as an integer, or `never` unchanged."""
        return value if value == NEVER else super().convert(cast("int", value), param, ctx)


def length(_: click.Context, __: click.Parameter, text: str) -> float:
    """Convert a positive duration such as `1h30m` to seconds. This is a callback for click.

    Raises `click.BadParameter` for other text.
    """
    found = parse_go_duration(text)
    if found is None or found <= 0:
        raise click.BadParameter(f"{text!r} is not a duration, such as 90s, 30m or 1h30m")
    return found / 1e9
