"""Which API requests may be retried, and when.

A cluster whose meta leader changes loses the requests that it was processing: there is no response
(seen on server 2.15.1 for 2 of 100 creations while the leader stepped down every second). An
idempotent request is therefore sent again, with the same reply subject. So is one that was refused
because there was no leader, and one that was lost with the connection.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff
from twinstream.core.error_details.transient import is_transient
from twinstream.errors import JetStreamError

__all__ = ["ASK_AGAIN", "is_repeatable", "pause_before_repeat"]

ASK_AGAIN: Final = Backoff(1.0)
"""Seconds without a response before a request is sent again."""

_BACKOFF: Final = Backoff(0.1, 1.0)

# Reads, and creating a stream, which returns the same response for the same configuration. Updates
# are not included: another client may have made a later one meanwhile.
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
    """Return whether a request to an API subject is idempotent.

    `prefix` is that of the API, such as `$JS.API`.
    """
    return subject.removeprefix(prefix + ".").startswith(_VERBS)


def pause_before_repeat(error: JetStreamError, attempts: int, left: float) -> float | None:
    """Return the seconds to wait before a refused request is retried; None means no retry.

    `attempts` were made so far, `left` are the seconds until the deadline.
    """
    if not is_transient(error):
        return None
    pause = _BACKOFF.pause(attempts)
    return pause if pause < left else None
