"""Preserve the order of messages when an instance of a member takes over from another instance.

The server delivers new messages to the newly pinned instance at once. It redelivers messages that
the earlier instance has not acknowledged when that instance naks them, or after ack_wait. So the
new instance buffers received messages until it has all unacknowledged ones, and then sorts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["has_all", "patience"]

# The server certainly redelivers a message within this many seconds after its ack_wait.
_MARGIN: Final = 1.0


def has_all(info: ConsumerInfo, came: Mapping[int, int], gap_at: int = 0) -> bool:
    """Return whether this instance has received all unacknowledged messages of a consumer.

    Args:
        info: The state of the consumer.
        came: The received messages, none of which was acknowledged: a mapping of the stream
            sequence to the consumer sequence of the last delivery.
        gap_at: If a delivery is missing, the consumer sequence of the next received delivery; else
            0. If `info` is older than this delivery, it may not count the missing message, so the
            result is False.
    """
    last = info.delivered.consumer_seq if info.delivered is not None else 0
    return last >= gap_at and (info.num_ack_pending or 0) <= sum(
        1 for seq in came.values() if seq <= last
    )


def patience(config: ConsumerConfig) -> float:
    """Return the seconds within which the server redelivers the messages of a dead instance.

    This is the longest time that the server waits for an acknowledgement, plus a margin.
    """
    waits: list[timedelta] = [config.ack_wait or timedelta(), *(config.backoff or ())]
    return max(waits).total_seconds() + _MARGIN
