"""When an ordered read may create its next consumer, and when it gives up."""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Backoff, Deadline
from twinstream.errors import ConnectionLost, TwinstreamError

__all__ = ["ConsumerAttempts"]

_BACKOFF: Final = Backoff(0.1, 10.0)
# A consumer that existed for this time (seconds) was stable, so the next one needs no pause.
_LONG_LIFE: Final = 1.0


class ConsumerAttempts:
    """The attempts of an ordered read to create consumers, one after the other.

    A failed attempt is repeated after a pause, until `most` in a row have failed; None means no
    limit. The first attempt of a read is only repeated after a lost connection. Also, if consumers
    are lost soon after their creation, the next attempt begins after a pause, to avoid a busy loop.
    """

    def __init__(self, most: int | None) -> None:
        self._most: Final = most
        self._began = False
        self._failures = 0
        self._pauses = 0
        # The number of consecutive consumers that were lost soon after their creation.
        self._short_lives = 0
        self._has_rested = False
        # The position of the read, and the monotonic time, when the last consumer was created.
        self._position = 0
        self._made_at = 0.0
        self.trouble: TwinstreamError | None = None
        """Why the last attempt failed, or None if it succeeded."""

    def created(self, position: int, now: float) -> None:
        """Record that an attempt succeeded, with the position of the read."""
        self._began, self._failures, self.trouble = True, 0, None
        self._position, self._made_at = position, now

    def failed(self, error: TwinstreamError) -> bool:
        """Record that an attempt failed. Return whether the read ends with this error."""
        self._failures += 1
        is_first = not self._began and not isinstance(error, ConnectionLost)
        if is_first or self._failures == self._most:
            self._failures = 0
            return True
        return False

    def lost(self, position: int, now: float) -> None:
        """Record that the consumer was lost, with the position of the read."""
        self._has_rested = False
        if position > self._position or now - self._made_at >= _LONG_LIFE:
            self._pauses = self._short_lives = 0
        else:
            self._short_lives += 1

    @property
    def needs_rest(self) -> bool:
        """Whether to pause before the next attempt, because consumers were lost soon."""
        return self._short_lives > 1 and not self._has_rested

    def rested(self) -> None:
        """Record that the pause for which `needs_rest` asks has passed."""
        self._has_rested = True

    def pause(self, error: TwinstreamError) -> Deadline:
        """Return the end of a pause, which begins now. `error` is its reason."""
        self.trouble = error
        self._pauses += 1
        return Deadline.after(_BACKOFF.pause(self._pauses))
