"""Transient errors of a server or a cluster, and retries until they have passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from twinstream.core.deadline import Deadline
from twinstream.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionLost,
    JetStreamError,
    JetStreamNotEnabled,
    RequestTimeout,
    TwinstreamError,
)

__all__ = ["Patience", "passes", "through"]

_T = TypeVar("_T")

_UNAVAILABLE: Final = 503
#: Seconds between attempts. After a leader steps down, a new one is elected within some tenths of
#: a second; after a leader is lost, within four to nine seconds.
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0)


def passes(error: TwinstreamError) -> bool:
    """Return whether an error is transient, so that a retry of the request may succeed.

    That is so if the connection was lost or could not be opened, no response came in time, or there
    was no leader.
    """
    if isinstance(error, JetStreamError):
        return error.code == _UNAVAILABLE and not isinstance(error, JetStreamNotEnabled)
    if isinstance(error, AuthenticationFailed):
        return False
    return isinstance(error, ConnectionLost | ConnectionFailed | RequestTimeout)


class Patience:
    """The time for retries, in seconds, and the pauses between attempts."""

    def __init__(self, seconds: float) -> None:
        self._deadline: Final = Deadline.after(seconds)
        self._pauses = 0

    def spend(self, error: TwinstreamError) -> None:
        """Pause before another attempt; raises the error if the time is over."""
        pause = _PAUSES[min(self._pauses, len(_PAUSES) - 1)]
        if self._deadline.remaining() <= pause:
            raise error
        self._pauses += 1
        time.sleep(pause)


def through(ask: Callable[[], _T], seconds: float) -> _T:
    """Return the response to a request, which is retried while its errors are transient.

    Raises the last error if that takes longer than ``seconds``, and other errors at once.
    """
    patience = Patience(seconds)
    while True:
        try:
            return ask()
        except TwinstreamError as error:
            if not passes(error):
                raise
            patience.spend(error)
