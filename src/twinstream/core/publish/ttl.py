"""The time to live of a message, and its header.

Source: ADR-43; servers 2.11 to 2.15.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import finite_seconds
from twinstream.errors import BadArgument
from twinstream.records.publish_request import Ttl

__all__ = ["NEVER", "ttl_header"]


NEVER: Final = "never"


def ttl_header(ttl: Ttl, name: str = "ttl") -> str:
    """Return a time to live as a header value.

    Raises `BadArgument` if it is invalid; `name` is used in the error message.
    """
    if ttl == NEVER:
        return NEVER
    if isinstance(ttl, str):
        raise BadArgument(f"{name} must be seconds or 'never', got {ttl!r}")
    whole = finite_seconds(ttl, name)
    if whole < 1 or whole != int(whole):
        raise BadArgument(
            f"{name} must be whole seconds from 1, got {ttl!r}: the server has no fractions"
        )
    return str(int(whole))
