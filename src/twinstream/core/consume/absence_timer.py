"""How long to wait while nobody answers for a consumer, and the user may not ask why.

The consumer is deleted, or it has no leader for a moment. The second passes, so it is waited for,
but not for ever.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors import NoResponders

__all__ = ["BOUND", "Doubt"]

BOUND: Final = 60.0
"""Seconds that nobody may answer before an iteration ends; elections take a few."""


class Doubt:
    """How long nobody has answered while `CONSUMER.INFO` was not permitted."""

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def is_known(self) -> bool:
        """Tell whether asking was refused before, so that it needs no further refusal."""
        return self._since is not None

    def clear(self) -> None:
        """Note an answer, or a new link, with which permissions may have changed."""
        self._since = None

    def grow(self, now: float) -> NoResponders | None:
        """Note that still nobody answers; return the error to raise when that lasts too long."""
        if self._since is None:
            self._since = now
        if now - self._since < BOUND:
            return None
        return NoResponders(
            f"nobody has answered for the consumer for {BOUND:g} s, and the user may not ask"
            " whether it exists (CONSUMER.INFO): it is deleted, or has no leader"
        )
