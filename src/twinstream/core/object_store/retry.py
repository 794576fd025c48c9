"""When a chunk or the description of an object is sent again."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.publish.retry import RetryPolicy
from twinstream.errors import ConnectionLost, TwinstreamError

__all__ = ["ObjectRetry"]


@frozen
class ObjectRetry(RetryPolicy):
    """What was lost with its connection is sent again until the time is over.

    Each has an id, so that none is stored twice. Another loss says nothing about the message: an
    upload of hours may meet many.
    """

    waits_for_leader: bool = True

    def left(
        self, attempts: int, seconds: float, error: TwinstreamError, *, lacks_leader: bool
    ) -> int:
        """Return how many attempts there may be, as for other messages otherwise."""
        if isinstance(error, ConnectionLost):
            return int(seconds > 0)
        return RetryPolicy.left(self, attempts, seconds, error, lacks_leader=lacks_leader)
