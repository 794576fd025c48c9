"""Decide when a chunk or a description is sent again."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.publish.retry import RetryPolicy
from twinstream.errors import ConnectionLost, TwinstreamError

__all__ = ["ObjectRetry"]


@frozen
class ObjectRetry(RetryPolicy):
    """Retries each message that was lost with its connection until the time is over.

    Each message has an id, so a retry cannot store it twice. The number of lost connections does
    not limit the retries, because an upload may run for hours.
    """

    waits_for_leader: bool = True

    def left(
        self, attempts: int, seconds: float, error: TwinstreamError, *, lacks_leader: bool
    ) -> int:
        """Return how many attempts remain; see `RetryPolicy.left`."""
        if isinstance(error, ConnectionLost):
            return int(seconds > 0)
        return RetryPolicy.left(self, attempts, seconds, error, lacks_leader=lacks_leader)
