"""Parse a position in a stream, which is a sequence or a time."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import click

from twinstream.cli.option_types import LAST_SEQUENCE
from twinstream.models import Timestamp

__all__ = ["moment"]


def moment(text: str, *, or_else: str = "") -> int | datetime:
    """Return a sequence, or a time with a time zone.

    Raises `click.BadParameter` for other text. `or_else` lists other valid values for the message,
    and ends with a comma and a space.
    """
    if text.isdecimal() and 0 < int(text) <= LAST_SEQUENCE:
        return int(text)
    time = _time(text)
    if time is None:
        raise click.BadParameter(f"{text!r} is neither {or_else}a sequence from 1 nor a time")
    if time.tzinfo is None:
        hint = "add Z for UTC, or an offset, as in 2026-01-31T08:00:00+01:00"
        raise click.BadParameter(f"{text!r} has no zone; {hint}")
    return time


def _time(text: str) -> datetime | None:
    """Parse a time in the server's format, with nanoseconds, or in another ISO 8601 format.

    Return None for other text.
    """
    for read in (Timestamp.parse, datetime.fromisoformat):
        with suppress(ValueError):
            return read(text)
    return None
