"""The attempts of one write under one deadline: when to try again, and with which error to end."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Deadline
from twinstream.errors import OutcomeUnknown, TwinstreamError

__all__ = ["Tries"]

# Seconds between attempts that were answered; the last one is repeated. A leader that steps down is
# replaced in about a second, one that was lost in about four.
_PAUSES: Final = (0.05, 0.1, 0.2, 0.4)
# An attempt waits for a third of the whole time at most: if its answer is lost, the next one needs
# some, too.
_SHARE: Final = 3.0
_SHORTEST: Final = 0.5


class Tries:
    """Keeps the books of one write, which may take until the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline: Final = deadline
        self._patience: Final = max(deadline.remaining() / _SHARE, _SHORTEST)
        self._answered = 0
        self.unknown = False
        """Whether there was an attempt whose outcome is unknown."""

    def patience(self) -> float:
        """Return how many seconds the next attempt may wait for its answer."""
        return min(self.deadline.remaining(), self._patience)

    def lost(self) -> None:
        """Note an attempt without an answer."""
        self.unknown = True

    def pause(self, error: TwinstreamError, what: str) -> float:
        """Return the seconds to wait before the next attempt, after `error` or a lost answer.

        Raises when there is no time left: `OutcomeUnknown` after a lost answer, else the error.
        """
        pause = _PAUSES[min(self._answered, len(_PAUSES) - 1)]
        self._answered += 1
        if self.deadline.remaining() <= pause:
            raise self.end(error, what)
        return pause

    def end(self, error: TwinstreamError, what: str) -> TwinstreamError:
        """Return the error to raise if the write ends now, after `error`."""
        if not self.unknown:
            return error
        unknown = OutcomeUnknown(f"{what}: an answer was lost, and then: {error}")
        unknown.__cause__ = error
        return unknown
