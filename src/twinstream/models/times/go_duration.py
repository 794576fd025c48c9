"""Durations in Go's notation, such as `1h30m` or `250ms`."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
# The first number of nanoseconds (292 years) that does not fit into Go's 64-bit type.
_TOO_LONG = 2**63

_PART = re.compile(r"(\d++\.?\d*+|\.\d++)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)


def parse_go_duration(text: str) -> int | None:
    """Return a duration such as `1h30m` in nanoseconds; None for other text."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total = Decimal(0)
    end = 0
    while match := _PART.match(rest, end):
        total += Decimal(match[1]) * _UNITS[match[2]]
        end = match.end()
    if not rest or end != len(rest) or total >= _TOO_LONG:
        return None
    return sign * int(total)
