"""Decide when a watch has delivered its initial values.

Theory of operation
-------------------
A watch is an ordered read, which delivers each revision once and in order, even if its consumer is
lost. `WatchState` decides when the initial values are complete.

* The read first has to pass the last revision that the bucket had at the start. It has passed this
  revision when it delivered it, or when heartbeats report that the server has scanned past it.
  `num_pending` does not prove this, because it can reach 0 and grow again while other clients
  write.
* A key that was overwritten before its delivery is delivered later, with its newer revision. So the
  watch requests the bucket's last revision again. If it is unchanged, nothing was overwritten, and
  the initial values are complete. Otherwise the watch continues up to the newer last revision and
  then requests it again.
* In a bucket that is written continuously, the initial values would never be complete. So they
  count as complete after ten requests for the last revision, and later revisions are delivered as
  updates.
* After a bucket was deleted and re-created, the watch delivers new initial values, and announces
  their end again. The response with the last revision may come from the new bucket, whose revisions
  start at 1 again, before the watch notices the loss of its consumer. So the owner compares the
  creation times, and ignores a last revision of another bucket.
"""

from __future__ import annotations

from typing import Final

__all__ = ["WatchState"]

_ROUNDS: Final = 10


class WatchState:
    """The progress of a watch's initial values. With `updates_only` there are none."""

    def __init__(self, *, updates_only: bool) -> None:
        self._updates_only: Final = updates_only
        self._rounds = 0
        self.is_marked = False
        """Whether `take_mark` has announced the end of the initial values."""
        self.target = 0
        """The revision up to which the watch delivers initial values; 0 before it is known."""
        self.is_live = updates_only
        """Whether the initial values are complete."""
        self.generation = 1
        """A number that starts with 1 and increases each time the bucket is re-created."""

    def reached(self, scanned: int) -> bool:
        """Return whether the read has progressed far enough to request the last revision."""
        return not self.is_live and scanned >= self.target

    def judge(self, last_revision: int, scanned: int) -> None:
        """Decide whether the initial values are complete.

        `last_revision` is the bucket's last revision as reported by the leader. `scanned` is the
        revision up to which the read has delivered or scanned the bucket.
        """
        self._rounds += 1
        if last_revision <= scanned or self._rounds >= _ROUNDS:
            self.is_live = True
        else:
            self.target = last_revision

    def take_mark(self) -> bool:
        """Return whether to announce the end of the initial values: true once per generation."""
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
