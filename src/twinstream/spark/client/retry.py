"""Retry requests while their errors are transient."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from twinstream.core.deadline import Backoff, Deadline
from twinstream.errors import JetStreamNotEnabled, TwinstreamError
from twinstream.errors.transient import is_transient

__all__ = ["Patience", "through"]

_T = TypeVar("_T")

# Seconds between attempts. After a leader steps down, a new one is elected within some tenths of
# a second; after a leader is lost, within four to nine seconds.
_BACKOFF: Final = Backoff(0.1, 1.0)


class Patience:
    """The time for retries of one request, which ends `seconds` after the construction."""

    def __init__(self, seconds: float) -> None:
        self._deadline: Final = Deadline.after(seconds)
        self._pauses = 0

    def spend(self, error: TwinstreamError) -> None:
        """Pause before another attempt. Raise `error` if the time ends before that."""
        self._pauses += 1
        pause = _BACKOFF.pause(self._pauses)
        if self._deadline.remaining() <= pause:
            raise error
        time.sleep(pause)


def through(request: Callable[[], _T], seconds: float) -> _T:
    """Call `request` and return its result. Retry while it raises transient errors.

    Raises a transient error if no time is left for another attempt within `seconds`. Raises any
    other error at once.
    """
    patience = Patience(seconds)
    while True:
        try:
            return request()
        except TwinstreamError as error:
            # If no server answered, `JetStreamNotEnabled` counts as transient, but its cause is
            # usually a wrong domain or account, so a retry would not help.
            if isinstance(error, JetStreamNotEnabled) or not is_transient(error):
                raise
            patience.spend(error)
