"""Order when an instance of a member takes over from another one.

The server delivers new messages to the instance that it pins, at once. Those that the earlier
instance had not acknowledged come when it returns them, or when its ack_wait is over. So the new
instance holds back what it gets until nothing is pending at another one, and sorts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["has_all", "patience"]

# Longer than a server needs to deliver a message again after its ack_wait (seconds).
_MARGIN: Final = 1.0


def has_all(info: ConsumerInfo, came: Mapping[int, int]) -> bool:
    """Return whether all unacknowledged messages of a consumer are at this instance.

    Args:
        info: State of the consumer.
        came: The stream sequences of the messages that came, none of which was acknowledged, and
            the consumer sequence of the last delivery of each.
    """
    last = info.delivered.consumer_seq if info.delivered is not None else 0
    return (info.num_ack_pending or 0) <= sum(1 for seq in came.values() if seq <= last)


def patience(config: ConsumerConfig) -> float:
    """Return the seconds after which messages of a dead instance have certainly come again."""
    waits: list[timedelta] = [config.ack_wait or timedelta(), *(config.backoff or ())]
    return max(waits).total_seconds() + _MARGIN
