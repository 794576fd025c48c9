"""When a watch has delivered the state that it began with.

Theory of operation
-------------------
A watch is an ordered read, which delivers each revision once and in order, through lost consumers.
This decides when its initial values are over.

* The read is past the last revision that the bucket had at the start when it delivered that, or
  when heartbeats say that the server has looked beyond it. `num_pending` proves nothing: it reaches
  0 and grows again while others write.
* A key that was overwritten before it was delivered comes later, with its newer revision. So the
  bucket's last revision is asked for again. If it is the same, nothing was overwritten, and the
  state is complete. Otherwise the watch goes on up to the newer one, and asks again.
* A bucket that is written without a pause would never be complete. After some rounds the state
  counts as complete: what is late by then comes as an update right after.
* A bucket that was deleted and created again has a new state, which is announced again.
"""

from __future__ import annotations

from typing import Final

__all__ = ["WatchState"]

_ROUNDS: Final = 10


class WatchState:
    """The state of one watch; `updates_only` has no initial values."""

    def __init__(self, *, updates_only: bool) -> None:
        self._updates_only: Final = updates_only
        self._rounds = 0
        self.is_marked = False
        """Whether it was said that the initial values are over."""
        self.target = 0
        """The revision up to which the state has to be delivered, as far as it is known."""
        self.is_live = updates_only
        """Whether the initial values are over."""
        self.generation = 1
        """Counts how often a state was begun: more than 1 after the bucket was created again."""

    def reached(self, scanned: int) -> bool:
        """Whether the read has come far enough to ask for the bucket's last revision."""
        return not self.is_live and scanned >= self.target

    def judge(self, last_revision: int, scanned: int) -> None:
        """Note the last revision that the bucket has, as its leader says."""
        self._rounds += 1
        if last_revision <= scanned or self._rounds >= _ROUNDS:
            self.is_live = True
        else:
            self.target = last_revision

    def take_mark(self) -> bool:
        """Whether to say now that the initial values are over; true once for each state."""
        if self.is_marked or not self.is_live:
            return False
        self.is_marked = True
        return True

    def restart(self) -> None:
        """Begin again: the bucket was deleted and created again."""
        self.generation += 1
        self._rounds = self.target = 0
        self.is_live = self._updates_only
        self.is_marked = False
