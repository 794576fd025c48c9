"""Limit how long an iteration waits without responders if it may not look up its consumer.

A pull has no responders if the consumer was deleted or has no leader at the moment. A missing
leader is temporary, so the iteration waits, but not indefinitely.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors import NoResponders

__all__ = ["BOUND", "AbsenceTimer"]

BOUND: Final = 60.0
"""Seconds without responders after which an iteration ends; an election takes a few seconds."""


class AbsenceTimer:
    """A timer of the time without responders, for a user without permission for `CONSUMER.INFO`."""

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the timer is running. Then the look-up was denied and is not tried again."""
        return self._since is not None

    def clear(self) -> None:
        """Reset the timer, after a response or after a reconnect, which may change permissions."""
        self._since = None

    def grow(self, now: float) -> NoResponders | None:
        """Record that there are no responders; return the error to raise after `BOUND`, or None."""
        if self._since is None:
            self._since = now
        if now - self._since < BOUND:
            return None
        return NoResponders(
            f"no responders for the consumer for {BOUND:g} s, and the user may not look it up"
            " (CONSUMER.INFO): it was deleted, or has no leader"
        )
