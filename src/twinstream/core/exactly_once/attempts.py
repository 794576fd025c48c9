"""The attempts of one write within one deadline: the pauses, and the final error."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff, Deadline
from twinstream.errors import OutcomeUnknown, TwinstreamError

__all__ = ["WriteAttempts"]

# Seconds between attempts. The election of a new leader takes about a second if the old leader
# stepped down, and about four seconds if it was lost.
_BACKOFF: Final = Backoff(0.05, 0.4)
# An attempt may use at most a third of the timeout (but at least `_SHORTEST` seconds), so that
# there is time for another attempt if its response is lost.
_SHARE: Final = 3.0
_SHORTEST: Final = 0.5


class WriteAttempts:
    """The state of the attempts of one write until its deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline: Final = deadline
        self._patience: Final = max(deadline.remaining() / _SHARE, _SHORTEST)
        self.answered = 0
        """The number of attempts that failed with a response."""
        self.unknown = False
        """Whether there was an attempt whose outcome is unknown."""

    def patience(self) -> float:
        """Return how many seconds the next attempt may wait for its response."""
        return min(self.deadline.remaining(), self._patience)

    def lost(self) -> None:
        """Record an attempt without a response."""
        self.unknown = True

    def pause(self, error: TwinstreamError, what: str) -> float:
        """Return the seconds to wait before the next attempt, after one that failed with `error`.

        If there is no time for another attempt, raises the error that `end` returns.
        """
        self.answered += 1
        pause = _BACKOFF.pause(self.answered)
        if self.deadline.remaining() <= pause:
            raise self.end(error, what)
        return pause

    def end(self, error: TwinstreamError, what: str) -> TwinstreamError:
        """Return the error of a write that ends after an attempt failed with `error`.

        It is `OutcomeUnknown` if the outcome of an attempt is unknown, else `error`. `what`
        describes the write.
        """
        if not self.unknown:
            return error
        unknown = OutcomeUnknown(f"{what}: a response was lost, and then: {error}")
        unknown.__cause__ = error
        return unknown
