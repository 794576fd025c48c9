"""Plan the next batch of a read: where it ends in each stream, within the limits of the options."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from twinstream.spark.source.batch_limits import admit, is_too_little
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import partition_count
from twinstream.spark.source.stream_state import StreamState

__all__ = ["BatchPlanner"]


class BatchPlanner:
    """A planner of the batches of one read, one after the other."""

    def __init__(self, options: SourceOptions, leader: Leader) -> None:
        self._options: Final = options
        self._leader: Final = leader
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
        ends = {name: self._end_of(state) for name, state in states.items()}
        backlog = {name: max(0, ends[name] - begin[name].next) for name in states}
        admitted = self._admit(backlog, states) if limited else backlog
        if not any(admitted.values()):
            return start
        gaps = self._gaps(begin, backlog, admitted)
        if any(gaps.values()):
            left = {name: count - gaps[name] for name, count in backlog.items()}
            admitted = admit(self._options, left, _sizes(states))
        self._admitted_at = time.monotonic()
        return Offset(
            {
                name: self._advance(begin[name], gaps[name], count, states[name])
                for name, count in admitted.items()
            }
        )

    def _end_of(self, state: StreamState) -> int:
        if self._target is None:
            return state.next
        return min(state.next, self._target.get(state.name, state.next))

    def _admit(self, backlog: dict[str, int], states: dict[str, StreamState]) -> dict[str, int]:
        waited = time.monotonic() - self._admitted_at
        # A read up to a recorded end must not wait for messages that it would not read.
        if self._target is None and is_too_little(self._options, backlog, waited):
            return dict.fromkeys(backlog, 0)
        return admit(self._options, backlog, _sizes(states))

    def _gaps(
        self, begin: Mapping[str, Position], backlog: Mapping[str, int], admitted: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the number of sequences between the start of the batch and the next message.

        The next message is the first that the filters match. The batch also covers these sequences,
        but limits do not count them. If limits counted them, a stream with few matching messages
        would give many empty batches. For a stream whose whole backlog is read, the number is 0 and
        no request is sent.
        """
        gaps = dict.fromkeys(backlog, 0)
        for name, count in backlog.items():
            if admitted[name] < count:
                low = begin[name].next
                found = self._leader.seq_from(name, low)
                gaps[name] = count if found is None else min(count, found - low)
        return gaps

    def _advance(self, position: Position, gap: int, count: int, state: StreamState) -> Position:
        if not gap + count:
            return position
        return Position(
            position.next + gap + count,
            position.created,
            ",".join(self._options.subjects),
            partition_count(self._options, count),
            position.since,
            state.mark,
        )


def _sizes(states: Mapping[str, StreamState]) -> dict[str, float]:
    return {name: state.mean_size for name, state in states.items()}
