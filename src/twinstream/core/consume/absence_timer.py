"""Limit on the time without responders when the user may not look up the consumer.

Either the consumer was deleted or it has no leader at the moment. The latter is temporary, so the
iteration waits, but not indefinitely.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors import NoResponders

__all__ = ["BOUND", "Doubt"]

BOUND: Final = 60.0
"""Seconds without responders after which an iteration ends; elections take a few."""


class Doubt:
    """Measures the time without responders while `CONSUMER.INFO` is not permitted."""

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the look-up was denied before, so that it need not be tried again."""
        return self._since is not None

    def clear(self) -> None:
        """Record a response, or a reconnect, after which permissions may have changed."""
        self._since = None

    def grow(self, now: float) -> NoResponders | None:
        """Record that there are still no responders; return the error to raise after `BOUND`."""
        if self._since is None:
            self._since = now
        if now - self._since < BOUND:
            return None
        return NoResponders(
            f"no responders for the consumer for {BOUND:g} s, and the user may not look it up"
            " (CONSUMER.INFO): it was deleted, or has no leader"
        )
