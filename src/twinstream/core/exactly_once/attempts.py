"""The attempts of one write within one deadline: when to retry, and the final error."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff, Deadline
from twinstream.errors import OutcomeUnknown, TwinstreamError

__all__ = ["Tries"]

# Seconds between attempts that got a response. After a leader stepped down it takes about a second
# to elect another one, after it was lost about four.
_BACKOFF: Final = Backoff(0.05, 0.4)
# An attempt may use at most a third of the timeout: if its response is lost, the next attempt needs
# time as well.
_SHARE: Final = 3.0
_SHORTEST: Final = 0.5


class Tries:
    """Keeps track of the attempts of one write until its deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline: Final = deadline
        self._patience: Final = max(deadline.remaining() / _SHARE, _SHORTEST)
        self._answered = 0
        self.unknown = False
        """Whether there was an attempt whose outcome is unknown."""

    def patience(self) -> float:
        """Return how many seconds the next attempt may wait for its response."""
        return min(self.deadline.remaining(), self._patience)

    def lost(self) -> None:
        """Record an attempt without a response."""
        self.unknown = True

    def pause(self, error: TwinstreamError, what: str) -> float:
        """Return the seconds to wait before the next attempt, after `error` or a lost response.

        Raises if there is no time left: `OutcomeUnknown` after a lost response, else the error.
        """
        self._answered += 1
        pause = _BACKOFF.pause(self._answered)
        if self.deadline.remaining() <= pause:
            raise self.end(error, what)
        return pause

    def end(self, error: TwinstreamError, what: str) -> TwinstreamError:
        """Return the error to raise if the write ends now, after `error`."""
        if not self.unknown:
            return error
        unknown = OutcomeUnknown(f"{what}: a response was lost, and then: {error}")
        unknown.__cause__ = error
        return unknown
