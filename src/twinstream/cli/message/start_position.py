"""Parse a position in a stream, which is a sequence, an age or a time."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click
from attrs import frozen

from twinstream.cli.option_types import LAST_SEQUENCE
from twinstream.models import Timestamp
from twinstream.models.units import parse_duration

if TYPE_CHECKING:
    from twinstream.models import DeliverPolicyWord

__all__ = ["Start", "age", "moment", "since_of", "start_text"]

_PLAIN: Final[dict[str, DeliverPolicyWord]] = {"all": "all", "new": "new", "last": "last"}


@frozen(kw_only=True)
class Start:
    """The start position of a new consumer, as the arguments of its config."""

    policy: DeliverPolicyWord
    sequence: int | None = None
    time: datetime | None = None


def start_text(text: str) -> Start:
    """Return a start position: `all`, `new`, `last`, a sequence, an age or a time.

    Raises `click.BadParameter` for other text.
    """
    if text in _PLAIN:
        return Start(policy=_PLAIN[text])
    where = moment(text, or_else="all, new, last, ")
    if isinstance(where, datetime):
        return Start(policy="by_start_time", time=where)
    return Start(policy="by_start_sequence", sequence=where)


def age(text: str) -> datetime | None:
    """Return the time that is as long ago as a duration says, such as `2m`; None for other text.

    The clock of this machine counts.
    """
    ns = parse_duration(text)
    if ns is None or ns <= 0:
        return None
    return Timestamp.from_ns(time.time_ns() - ns)


def since_of(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    """Return the value of `--since`, an age, as a time. This is a callback for click."""
    if text is None:
        return None
    found = age(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not an age, such as 90s, 1h30m or 7d")
    return found


def moment(text: str, *, or_else: str = "") -> int | datetime:
    """Return a sequence, or a time with a time zone, which may be given as an age such as `2m`.

    Raises `click.BadParameter` for other text. `or_else` lists other valid values for the message,
    and ends with a comma and a space.
    """
    if text.isdecimal() and 0 < int(text) <= LAST_SEQUENCE:
        return int(text)
    found = age(text) or _time(text)
    if found is None:
        raise click.BadParameter(
            f"{text!r} is neither {or_else}a sequence from 1, an age such as 2m, nor a time"
        )
    if found.tzinfo is None:
        hint = "add Z for UTC, or an offset, as in 2026-01-31T08:00:00+01:00"
        raise click.BadParameter(f"{text!r} has no zone; {hint}")
    return found


def _time(text: str) -> datetime | None:
    """Parse a time in the server's format, with nanoseconds, or in another ISO 8601 format.

    Return None for other text.
    """
    for read in (Timestamp.parse, datetime.fromisoformat):
        with suppress(ValueError):
            return read(text)
    return None
