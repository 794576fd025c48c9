"""Times in requests, limited to the range in which a server can compare them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from twinstream.errors import BadArgument
from twinstream.models import Timestamp

__all__ = ["comparable"]

# A server compares nanoseconds since 1970 as 64-bit integers, and a larger value wraps around. So a
# request for messages since the year 2300 would return all messages instead of none. No message is
# older than 1970.
_FIRST: Final = Timestamp.from_ns(0)
_LAST: Final = Timestamp.from_ns(2**63 - 1)


def comparable(time: datetime, name: str) -> Timestamp:
    """Return a time, or the nearest time that a server can compare.

    Raises `BadArgument`, with `name` in its message, for a value that is not a time with a zone.
    """
    try:
        moment = Timestamp.of(time)
    except (TypeError, ValueError) as error:
        raise BadArgument(f"{name}: {error}") from error
    if moment < _FIRST:
        return _FIRST
    return _LAST if moment > _LAST else moment
