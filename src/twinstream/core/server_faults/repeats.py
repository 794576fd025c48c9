"""May this request be repeated, and when.

A request is repeated with the same reply subject if there is no response, if it was refused because
there was no leader, or if the connection was lost. Only idempotent requests are. While there are no
responders, no server has received the request, so any request may be sent again (`delays`).
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff
from twinstream.errors import JetStreamError
from twinstream.errors.transient import is_transient
from twinstream.models.error_codes import (
    RESTORE_FAILED,
    STREAM_ASSIGNMENT,
    STREAM_NAME_EXISTS_RESTORE,
)

__all__ = [
    "ASK_AGAIN",
    "LATE_FAILURE",
    "is_late_failure",
    "is_repeatable",
    "pause_before_repeat",
]

ASK_AGAIN: Final = Backoff(1.0)
"""The pauses without a response before a request is sent again: 1, 2, 4 … seconds."""

LATE_FAILURE: Final = 2.0
"""Seconds for which a restore is requested again that got the failure of an earlier restore."""

_BACKOFF: Final = Backoff(0.1, 1.0)

# Requests that read, the creation of a stream, and the reset of a consumer. If the stream already
# exists with the same configuration, the server replies in the same way. A repeat resets the
# consumer to the same sequence. Updates are not included, because a repeated update could undo one
# that another client made in the meantime.
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
    "CONSUMER.RESET.",
)

# The failures of a restore that has begun. As the response to a request, they are of another one.
_FAILURES: Final = (STREAM_ASSIGNMENT, RESTORE_FAILED)


def is_repeatable(subject: str, prefix: str) -> bool:
    """Return whether a request on an API subject is idempotent.

    `prefix` is the prefix of the API, such as `$JS.API`.
    """
    return subject.removeprefix(prefix + ".").startswith(_VERBS)


def pause_before_repeat(error: JetStreamError, attempts: int, remaining: float) -> float | None:
    """Return the seconds to wait before a refused request is sent again; None means no retry.

    `attempts` is the number of attempts so far. `remaining` is the time until the deadline in
    seconds.
    """
    if not is_transient(error):
        return None
    pause = _BACKOFF.pause(attempts)
    return pause if pause < remaining else None


def is_late_failure(error: JetStreamError, *, again: bool) -> bool:
    """Return whether the refusal of a restore is the failure of an earlier restore of that name.

    After the first such failure (`again`), the name may be taken until the server has removed what
    it began.
    """
    return error.err_code in _FAILURES or (again and error.err_code == STREAM_NAME_EXISTS_RESTORE)
