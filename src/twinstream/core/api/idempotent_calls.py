"""Decide which API requests may be sent again, and when.

When the meta leader of a cluster changes, the cluster loses the requests that it was processing,
and sends no response (seen on server 2.15.1 for 2 of 100 creations while the leader stepped down
every second). An idempotent request is therefore sent again, with the same reply subject, if there
is no response, if it was refused because there was no leader, or if the connection was lost.

The leader of a new stream or consumer subscribes to its subjects. In a cluster, the other servers
learn of these subscriptions some milliseconds later. Until then, such a server replies that there
are no responders, although the creation is confirmed (server 2.15.1: 6 to 22 of 100 requests of
another client right after the creation, by kind, in a cluster of three). A leaf node that has just
started does so for requests to its hub. No server has received the request then, so any request may
be sent again.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff
from twinstream.errors import JetStreamError
from twinstream.errors.transient import is_transient

__all__ = [
    "ASK_AGAIN",
    "SPREADING",
    "SPREADING_PAUSES",
    "is_repeatable",
    "pause_before_repeat",
]

ASK_AGAIN: Final = Backoff(1.0)
"""The pauses without a response before a request is sent again: 1, 2, 4 … seconds."""

SPREADING: Final = 0.3
"""Seconds for which a request to a leader is repeated while there are no responders."""

SPREADING_PAUSES: Final = Backoff(0.01, 0.1)
"""The pauses in seconds between these repeats."""

_BACKOFF: Final = Backoff(0.1, 1.0)

# Requests that read, and the creation of a stream. If the stream already exists with the same
# configuration, the server replies in the same way. Updates are not included, because a repeated
# update could undo one that another client made in the meantime.
_VERBS: Final = (
    "INFO",
    "STREAM.CREATE.",
    "STREAM.INFO.",
    "STREAM.LIST",
    "STREAM.NAMES",
    "STREAM.MSG.GET.",
    "CONSUMER.INFO.",
    "CONSUMER.LIST.",
    "CONSUMER.NAMES.",
)


def is_repeatable(subject: str, prefix: str) -> bool:
    """Return whether a request on an API subject is idempotent.

    `prefix` is the prefix of the API, such as `$JS.API`.
    """
    return subject.removeprefix(prefix + ".").startswith(_VERBS)


def pause_before_repeat(error: JetStreamError, attempts: int, left: float) -> float | None:
    """Return the seconds to wait before a refused request is sent again; None means no retry.

    `attempts` is the number of attempts so far. `left` is the time until the deadline in seconds.
    """
    if not is_transient(error):
        return None
    pause = _BACKOFF.pause(attempts)
    return pause if pause < left else None
