"""Durations and sizes with units, as people write them in YAML files and on the command line."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from twinstream.models.times.go_duration import parse_go_duration

__all__ = ["DURATION_PATTERN", "SIZE_PATTERN", "in_hours", "parse_duration", "parse_size"]

# A number of days or weeks, such as `7d`. Go durations do not have these units.
_DAYS: Final = re.compile(r"(?<![\d.])(\d{1,5})([dw])", re.ASCII)

_SIZE: Final = re.compile(r"(\d{1,20}(?:\.\d{1,9})?) ?([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}

DURATION_PATTERN: Final = r"^([0-9]+\.?[0-9]*(ns|us|\u00b5s|\u03bcs|ms|s|m|h|d|w))+$"
SIZE_PATTERN: Final = r"^[0-9]+(\.[0-9]+)? ?[kKmMgGtT]?([iI]?[bB])?$"
"""The patterns of both notations for JSON Schema."""


def parse_duration(text: str) -> int | None:
    """Return a duration such as `7d`, `1h30m` or `250ms` in nanoseconds; None for other text.

    The units are those of Go, and `d` and `w` for whole days and weeks.
    """
    return parse_go_duration(in_hours(text))


def in_hours(text: str) -> str:
    """Return a duration with days and weeks replaced by hours: `168h` for `7d`."""
    return _DAYS.sub(lambda days: f"{int(days[1]) * (24 if days[2] == 'd' else 168)}h", text)


def parse_size(text: str) -> int | None:
    """Return a size such as `512`, `1KB`, `10MiB` or `1.5G` in bytes; None for other text.

    All units are powers of 1,024, as in the `nats` command, and their case has no meaning.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    return int(Decimal(found[1]) * (1 << _POWERS[found[2].lower()]))
