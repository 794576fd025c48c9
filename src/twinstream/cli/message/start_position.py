"""Parse a position in a stream, which is a sequence, an age or a time."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import click
from attrs import frozen

from twinstream.cli.option_types import LAST_SEQUENCE, Type
from twinstream.models import Timestamp
from twinstream.models.units import parse_duration

if TYPE_CHECKING:
    from twinstream.models import DeliverPolicyWord

__all__ = ["Moment", "Start", "age", "moment", "since_of", "start_text"]

_PLAIN: Final[dict[str, DeliverPolicyWord]] = {"all": "all", "new": "new", "last": "last"}


# A time of day, with or without seconds.
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


class Moment(Type):
    """The type of an option for a past moment.

    The value is a sequence or a time. The time may be given as an age such as `2h`, as a time of
    day such as `14:05`, or in RFC 3339.
    """

    name = "moment"

    def __init__(self, number: str = "sequence") -> None:
        """Create the type. `number` is the word for a sequence in messages."""
        self._number = number

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | datetime:
        """Return the moment, or raise a usage error."""
        if isinstance(value, int | datetime):
            return value
        text = str(value)
        try:
            return _time_of_day(text) or moment(text, number=self._number)
        except click.BadParameter as error:
            self.fail(error.message, param, ctx)


def _time_of_day(text: str) -> datetime | None:
    """Return the last time at which the clock of this machine showed `text`, such as `14:05`.

    Return None for text that is no time of day.
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, second = (int(each or 0) for each in found.groups())
    now = datetime.now()
    try:
        asked = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time of day") from None
    return (asked if asked <= now else asked - timedelta(days=1)).astimezone()


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


def moment(text: str, *, or_else: str = "", number: str = "sequence") -> int | datetime:
    """Return a sequence, or a time with a time zone, which may be given as an age such as `2m`.

    Raises `click.BadParameter` for other text. `or_else` lists other valid values for the message,
    and ends with a comma and a space. `number` is the word for a sequence.
    """
    if text.isdecimal() and 0 < int(text) <= LAST_SEQUENCE:
        return int(text)
    found = age(text) or _time(text)
    if found is None:
        raise click.BadParameter(
            f"{text!r} is neither {or_else}a {number} from 1, an age such as 2m, nor a time"
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
