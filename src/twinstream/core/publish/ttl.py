"""How long a message lives, as its header says it.

Source: ADR-43; servers 2.11 to 2.15.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadArgument

__all__ = ["NEVER", "Ttl", "ttl_header"]

Ttl: TypeAlias = Seconds | Literal["never"]
"""Whole seconds from 1 up, or `never`: then the stream's `max_age` does not remove it either."""

NEVER: Final = "never"


def ttl_header(ttl: Ttl, name: str = "ttl") -> str:
    """Return the value of the header. Raises `BadArgument`; `name` is for the error."""
    if ttl == NEVER:
        return NEVER
    if isinstance(ttl, str):
        raise BadArgument(f"{name} must be seconds or 'never', got {ttl!r}")
    whole = finite_seconds(ttl, name)
    if whole < 1 or whole != int(whole):
        raise BadArgument(
            f"{name} must be whole seconds from 1 up, got {ttl!r}: the server cuts parts"
        )
    return str(int(whole))
