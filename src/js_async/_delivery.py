"""What messages that arrived together have in common."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import js_models
from js_async._transport import Transport

if TYPE_CHECKING:
    from js_models import ConsumerInfo

__all__ = ["AGE_SHARE", "Delivery", "ack_wait_of"]

AGE_SHARE: Final = 0.5
"""What is buffered should be worked on in half of the consumer's patience."""


class Delivery:
    """The transport, and until when the server leaves the messages to this client.

    `told_at` is when they arrived or the server was last told that work goes on (monotonic);
    `ack_wait` is in seconds, None where it is unknown or the consumer wants no acknowledgement.
    """

    __slots__ = ("ack_wait", "told_at", "transport")

    def __init__(self, transport: Transport, told_at: float, ack_wait: float | None) -> None:
        self.transport: Final = transport
        self.told_at = told_at
        self.ack_wait: Final = ack_wait

    def is_late(self, now: float) -> bool:
        """Tell whether the server has given up on the messages and delivers them anew."""
        return self.ack_wait is not None and now - self.told_at >= self.ack_wait


def ack_wait_of(info: ConsumerInfo | None) -> float | None:
    """Return the shortest time that the consumer waits for an acknowledgement, in seconds.

    With a backoff the server uses its steps in place of ack_wait. None when nothing is known, or
    when the consumer wants no acknowledgements.
    """
    config = info.config if info is not None else None
    if config is None or config.ack_policy in {js_models.AckPolicy.NONE, None}:
        return None
    waits: list[timedelta] = list(config.backoff or ())
    if config.ack_wait is not None:
        waits.append(config.ack_wait)
    return min(waits).total_seconds() if waits else None
