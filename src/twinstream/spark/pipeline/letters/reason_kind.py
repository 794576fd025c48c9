"""Reduce the reasons of dead letters to their kinds, so that they can be counted."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["kind_of_reason"]

_VALUE: Final = r"(?:text .+|-?[\d.]\S*|-?inf|nan|a number of more than 128 bits)"

# Parts of reasons with values or places, and what they become.
_PARTS: Final = [
    (re.compile(r", got text .*", re.DOTALL), ", got text"),
    (re.compile(r", got (?:-?[\d.].*|-?inf|nan|a number .*)"), ", got a number"),
    (re.compile(rf": {_VALUE} (does not fit|has digits|is not)", re.DOTALL), r": a value \1"),
    (re.compile(r"(is not a timestamp): .*", re.DOTALL), r"\1"),
    (re.compile(r"(not JSON: .*) at .*", re.DOTALL), r"\1"),
    (re.compile(r"(not UTF-8) at byte \d+"), r"\1"),
    (re.compile(r"(not a NATS header block): .*", re.DOTALL), r"\1"),
]


def kind_of_reason(reason: str) -> str:
    """Return a reason without the value and the place in the payload, which vary by message."""
    for pattern, shorter in _PARTS:
        reason = pattern.sub(shorter, reason)
    return reason
