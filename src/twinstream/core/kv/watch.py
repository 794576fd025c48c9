"""Decide when a watch has delivered its initial values.

Theory of operation
-------------------
A watch is an ordered read, which delivers each revision once and in order, even if its consumer is
lost. This module decides when the initial values are complete.

* The read has passed the last revision that the bucket had at the start when it delivered this
  revision, or when heartbeats report that the server has scanned past it. `num_pending` proves
  nothing: it can reach 0 and grow again while other clients write.
* A key that was overwritten before its delivery is delivered later, with its newer revision. So the
  bucket's last revision is requested again. If it is unchanged, nothing was overwritten, and the
  state is complete. Otherwise the watch continues up to the newer revision and requests it again.
* A bucket that is written continuously would never be complete. After some rounds the state counts
  as complete, and later revisions are delivered as updates.
* A bucket that was deleted and re-created has a new state, which is announced again.
"""

from __future__ import annotations

from typing import Final

__all__ = ["WatchState"]

_ROUNDS: Final = 10


class WatchState:
    """The initial state of one watch. With `updates_only` it has no initial values."""

    def __init__(self, *, updates_only: bool) -> None:
        self._updates_only: Final = updates_only
        self._rounds = 0
        self.is_marked = False
        """Whether the end of the initial values was announced."""
        self.target = 0
        """The revision up to which the state must be delivered, as far as it is known."""
        self.is_live = updates_only
        """Whether all initial values were delivered."""
        self.generation = 1
        """The number of states so far: more than 1 after the bucket was re-created."""

    def reached(self, scanned: int) -> bool:
        """Return whether the read has progressed far enough to request the last revision."""
        return not self.is_live and scanned >= self.target

    def judge(self, last_revision: int, scanned: int) -> None:
        """Record the bucket's last revision as reported by its leader."""
        self._rounds += 1
        if last_revision <= scanned or self._rounds >= _ROUNDS:
            self.is_live = True
        else:
            self.target = last_revision

    def take_mark(self) -> bool:
        """Return whether to announce the end of the initial values: True once for each state."""
        if self.is_marked or not self.is_live:
            return False
        self.is_marked = True
        return True

    def restart(self) -> None:
        """Start over, because the bucket was deleted and re-created."""
        self.generation += 1
        self._rounds = self.target = 0
        self.is_live = self._updates_only
        self.is_marked = False
