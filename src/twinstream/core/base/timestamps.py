"""Times in requests: what a server can compare with those of its messages."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from twinstream.errors import BadArgument
from twinstream.models import Timestamp

__all__ = ["comparable"]

# A server compares nanoseconds since 1970 in 64 bits. What is beyond them would turn up on the
# other side: nothing since the year 2300 would be everything. No message is older than 1970.
_FIRST: Final = Timestamp.from_ns(0)
_LAST: Final = Timestamp.from_ns(2**63 - 1)


def comparable(time: datetime, name: str) -> Timestamp:
    """Return a time, or the nearest that a server can compare. Raises `BadArgument` for none."""
    try:
        moment = Timestamp.of(time)
    except (TypeError, ValueError) as error:
        raise BadArgument(f"{name}: {error}") from error
    if moment < _FIRST:
        return _FIRST
    return _LAST if moment > _LAST else moment
