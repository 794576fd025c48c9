"""Plan the next batch of a read: where it ends in each stream, within the limits of the options."""

from __future__ import annotations

import time
from typing import Final

from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.limits.backlog import Backlog
from twinstream.spark.source.limits.message_counts import MessageCounts
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import partition_count
from twinstream.spark.source.stream_state import StreamState

__all__ = ["BatchPlanner"]


class BatchPlanner:
    """A planner of the batches of one read, one after the other."""

    def __init__(self, options: SourceOptions, leader: Leader, counts: MessageCounts) -> None:
        self._options: Final = options
        self._leader: Final = leader
        self._counts: Final = counts
        self._continuity: Final = Continuity(options, leader.time_at)
        self._target: dict[str, int] | None = None
        self._admitted_at = time.monotonic()

    def aim_at_end(self) -> None:
        """Record the current end of each stream. Batches have no later messages then."""
        self._target = {state.name: state.next for state in self._leader.states()}

    def next(self, start: Offset, *, limited: bool = True) -> Offset:
        """Return the offset at the end of the next batch, or `start` if no batch is due.

        If `limited` is false, the batch has the whole backlog.
        """
        states = {state.name: state for state in self._leader.states()}
        begin = self._continuity.begin(start, states)
        backlog = Backlog(
            {
                name: (begin[name].next, max(begin[name].next, self._end_of(state)))
                for name, state in states.items()
            },
            states,
            self._options,
            self._counts,
        )
        ends = backlog.ends
        if limited:
            waited = time.monotonic() - self._admitted_at
            # A read up to a recorded end must not wait for messages that it would not read.
            may_wait = self._target is None
            if may_wait and backlog.is_too_little(waited):
                return start
            ends = backlog.limited()
        is_empty = all(begin[name].next == end for name, end in ends.items())
        if is_empty:
            return start
        self._admitted_at = time.monotonic()
        return Offset(
            {
                name: self._advance(begin[name], end, states[name], backlog.messages(name, end))
                for name, end in ends.items()
            }
        )

    def _end_of(self, state: StreamState) -> int:
        if self._target is None:
            return state.next
        # The next run reads a stream that was created since.
        return min(state.next, self._target.get(state.name, state.first))

    def _advance(self, position: Position, end: int, state: StreamState, messages: int) -> Position:
        """Return the position after a batch that ends at `end`, with the current filter."""
        if end == position.next:
            return position
        return Position(
            end,
            position.created,
            ",".join(self._options.subjects),
            partition_count(self._options, messages),
            position.since,
            state.mark,
        )
