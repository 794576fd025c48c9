"""Parse numbers, sequences, and durations such as `90s`, `30m`, `1h30m`."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, cast

import click

from twinstream.core.publish.ttl import NEVER
from twinstream.models.go_duration import parse_go_duration

__all__ = ["LAST_SEQUENCE", "SEQUENCE", "Finite", "Life", "length"]

LAST_SEQUENCE: Final = 2**64 - 1
SEQUENCE: Final = click.IntRange(1, LAST_SEQUENCE)
"""The type of an option for the sequence of a message in its stream."""


class Finite(click.FloatRange):
    """A number within a range, but neither `nan` nor `inf`."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        found = float(super().convert(cast("float", value), param, ctx))
        if not isfinite(found):
            self.fail(f"{value} is not a finite number", param, ctx)
        return found


class Life(click.IntRange):
    """A message's TTL: whole seconds from 1 up, or `never`."""

    name = "seconds or never"

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number, or the keyword."""
        return value if value == NEVER else super().convert(cast("int", value), param, ctx)


def length(_: click.Context, __: click.Parameter, text: str) -> float:
    """Parse an argument as a positive duration in seconds; a callback of click."""
    found = parse_go_duration(text)
    if found is None or found <= 0:
        raise click.BadParameter(f"{text!r} is not a duration, such as 90s, 30m or 1h30m")
    return found / 1e9
