"""Lengths of time as people write them: `90s`, `30m`, `1h30m`."""

from __future__ import annotations

import click

from js_models.go_duration import parse_go_duration

__all__ = ["length"]


def length(_: click.Context, __: click.Parameter, text: str) -> float:
    """Return the seconds of an argument, more than none; a callback of click."""
    found = parse_go_duration(text)
    if found is None or found <= 0:
        raise click.BadParameter(f"{text!r} is no length of time, such as 90s, 30m or 1h30m")
    return found / 1e9
