"""The shared state of messages that arrived together, and settings derived from consumer info."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final

import twinstream.models
from js_async.client.transport import Transport
from twinstream.core.consume.ack_wait import ack_wait_of
from twinstream.core.consume.pull_request import UNBOUNDED, PullBounds

if TYPE_CHECKING:
    from twinstream.core.payloads.payloads import Payloads
    from twinstream.models import ConsumerInfo

__all__ = [
    "Delivery",
    "ahead",
    "is_for_nobody_else",
    "pull_bounds",
]

# The share of the consumer's ack_wait within which the caller should take a buffered message.
_AGE_SHARE: Final = 0.5

# A pinned client that sends no pull for `priority_timeout` loses its pin. The client therefore
# pulls within half of this timeout. A request expires after a third of the timeout, so that an idle
# client pulls in time, too.
_PIN_SHARE: Final = 0.5
_PIN_LIFE: Final = 1 / 3

# The assumed maximum transit time of a message: this number of seconds, or this share of the
# consumer's ack_wait if that is less.
_LONGEST_WAY: Final = 0.05
_WAY_SHARE: Final = 0.05


class Delivery:
    """The shared state of messages that arrived together. It shows when they may be redelivered.

    `reported_at` is the monotonic time of their arrival or of the last progress report. `late_at`
    is the time from which ack_wait may be over, so that the server may redeliver the messages;
    infinity without `ack_wait`. `ack_wait` is in seconds; None if it is unknown or the consumer
    requires no acknowledgement. `transport` sends the acknowledgements. `timeout` is the default
    timeout in seconds of an acknowledgement that waits for the server's confirmation. `payloads`
    decodes the messages of a typed handle, otherwise it is None.
    """

    __slots__ = ("ack_wait", "late_at", "payloads", "reported_at", "timeout", "transport")

    def __init__(
        self,
        transport: Transport,
        reported_at: float,
        ack_wait: float | None,
        timeout: float,
        payloads: Payloads[Any] | None = None,
    ) -> None:
        self.payloads: Final = payloads
        self.transport: Final = transport
        self.timeout: Final = timeout
        self.ack_wait: Final = ack_wait
        self.note_report(reported_at)

    def note_report(self, at: float) -> None:
        """Record that the messages arrived, or that their progress was reported, at this time."""
        wait = self.ack_wait
        self.reported_at = at
        self.late_at = inf if wait is None else at + wait - ahead(wait)


def ahead(ack_wait: float) -> float:
    """Return the number of seconds by which ack_wait may end earlier on the server.

    The server counts from the time when it sends a message, the client from the time of arrival.
    """
    return min(_LONGEST_WAY, ack_wait * _WAY_SHARE)


def is_for_nobody_else(info: ConsumerInfo | None) -> bool:
    """Return True if a message that this client returns may never reach another client.

    This is so if the consumer delivers each message at most once, or if it is not durable. Usually
    only one client uses a consumer that is not durable, and the server deletes such a consumer when
    it is inactive. Return False if the configuration is unknown.
    """
    config = info.config if info is not None else None
    return config is not None and (config.max_deliver == 1 or config.durable_name is None)


def pull_bounds(info: ConsumerInfo | None) -> PullBounds:
    """Return the limits that the consumer's configuration sets for pulls.

    Returns `UNBOUNDED` if the configuration is unknown.
    """
    config = info.config if info is not None else None
    if config is None:
        return UNBOUNDED
    ack_wait = ack_wait_of(info)
    lives = [config.max_expires.total_seconds()] if config.max_expires else []
    pin = None
    if (
        config.priority_policy == twinstream.models.PriorityPolicy.PINNED_CLIENT
        and config.priority_timeout
    ):
        pin = config.priority_timeout.total_seconds()
        lives.append(pin * _PIN_LIFE)
    return PullBounds(
        max_batch=config.max_batch or None,
        max_waiting=config.max_waiting or None,
        max_expires=min(lives, default=None),
        max_age=None if ack_wait is None else ack_wait * _AGE_SHARE,
        pull_every=None if pin is None else pin * _PIN_SHARE,
    )
