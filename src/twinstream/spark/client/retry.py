"""Troubles of a server or a cluster that pass by themselves, and asking again until then."""

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
#: Seconds between attempts. A leader that steps down is followed within some tenths of a second,
#: one that was lost within four to nine seconds.
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0)


def passes(error: TwinstreamError) -> bool:
    """Tell whether a question may be answered when it is asked again a moment later.

    That is so if the link broke or could not be made, nobody answered in time, or there was no
    leader.
    """
    if isinstance(error, JetStreamError):
        return error.code == _UNAVAILABLE and not isinstance(error, JetStreamNotEnabled)
    if isinstance(error, AuthenticationFailed):
        return False
    return isinstance(error, ConnectionLost | ConnectionFailed | RequestTimeout)


class Patience:
    """How long trouble may last, in seconds, and the pauses between attempts meanwhile."""

    def __init__(self, seconds: float) -> None:
        self._deadline: Final = Deadline.after(seconds)
        self._pauses = 0

    def spend(self, error: TwinstreamError) -> None:
        """Pause before another attempt; raises the error when the time is over."""
        pause = _PAUSES[min(self._pauses, len(_PAUSES) - 1)]
        if self._deadline.remaining() <= pause:
            raise error
        self._pauses += 1
        time.sleep(pause)


def through(ask: Callable[[], _T], seconds: float) -> _T:
    """Return the answer to a question, asked again while its trouble is one that passes.

    Raises the last trouble if that takes longer than ``seconds``, and other errors at once.
    """
    patience = Patience(seconds)
    while True:
        try:
            return ask()
        except TwinstreamError as error:
            if not passes(error):
                raise
            patience.spend(error)
