"""Order when an instance of a member takes over from another one.

The server delivers new messages to the newly pinned instance at once. Messages that the earlier
instance had not acknowledged are redelivered when it naks them, or after ack_wait. So the new
instance buffers what it receives until no message is pending elsewhere, and sorts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["has_all", "patience"]

# Longer than a server needs to redeliver a message after its ack_wait (seconds).
_MARGIN: Final = 1.0


def has_all(info: ConsumerInfo, came: Mapping[int, int]) -> bool:
    """Return whether all unacknowledged messages of a consumer have reached this instance.

    Args:
        info: State of the consumer.
        came: Consumer sequence of the last delivery, by stream sequence, for each received message.
            None of them has been acknowledged.
    """
    last = info.delivered.consumer_seq if info.delivered is not None else 0
    return (info.num_ack_pending or 0) <= sum(1 for seq in came.values() if seq <= last)


def patience(config: ConsumerConfig) -> float:
    """Return the seconds after which a dead instance's messages have certainly been redelivered."""
    waits: list[timedelta] = [config.ack_wait or timedelta(), *(config.backoff or ())]
    return max(waits).total_seconds() + _MARGIN
