"""The policy by which chunks and metadata are sent again."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.publish.retry_pauses import RetryPolicy
from twinstream.errors import ConnectionLost, TwinstreamError

__all__ = ["ObjectRetry"]


@frozen
class ObjectRetry(RetryPolicy):
    """A policy that sends a message again after each lost connection, until the timeout.

    Each message has an id, so a retry cannot store it twice. The number of lost connections does
    not limit the retries, because an upload may take hours.
    """

    waits_for_leader: bool = True

    def left(
        self, attempts: int, seconds: float, error: TwinstreamError, *, lacks_leader: bool
    ) -> int:
        """Return how many more attempts may follow; see `RetryPolicy.left`."""
        if isinstance(error, ConnectionLost):
            return int(seconds > 0)
        return RetryPolicy.left(self, attempts, seconds, error, lacks_leader=lacks_leader)
