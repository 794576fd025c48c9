"""How long a consumer waits for an acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import twinstream.models

if TYPE_CHECKING:
    from datetime import timedelta

    from twinstream.models import ConsumerInfo

__all__ = ["ack_wait_of"]


def ack_wait_of(info: ConsumerInfo | None) -> float | None:
    """Return the shortest time in seconds that the consumer waits for an acknowledgement.

    A consumer with a backoff waits for the time of the current backoff step instead of ack_wait.
    Returns None if the configuration is unknown, or if the consumer requires no acknowledgements.
    """
    config = info.config if info is not None else None
    if config is None or config.ack_policy in {twinstream.models.AckPolicy.NONE, None}:
        return None
    waits: list[timedelta] = list(config.backoff or ())
    if config.ack_wait is not None:
        waits.append(config.ack_wait)
    return min(waits).total_seconds() if waits else None
