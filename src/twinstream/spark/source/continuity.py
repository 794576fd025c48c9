"""Check that a stream matches its checkpoint, and that it still has the messages to read.

Five cases are distinguished: messages that were lost before they were read (see `removal`), a
stream that was deleted and re-created, a stream that was restored to an earlier state and kept its
creation time, a changed filter, and streams that were added to or removed from the read.

A read is strict unless `failOnDataLoss` is false. A strict read fails in the first four cases and
if a stream was removed from the read. Other reads continue with the messages that still exist.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from twinstream.lake.stream_mark import Mark, TimeAt
from twinstream.spark.errors import CheckpointError, DataLossError, OptionError
from twinstream.spark.source.bounds import Bound, SeqAt, SeqOfLast
from twinstream.spark.source.filters import instead_of, same_filter
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.removed_messages import not_before, why_lost
from twinstream.spark.source.stream_identity import advice, why_other
from twinstream.spark.source.stream_state import StreamState

__all__ = ["Continuity"]

_GO_ON = "; set failOnDataLoss=false to continue with the messages that are left"


class Continuity:
    """The checks for one read. `time_at` looks up when a message was stored."""

    def __init__(self, options: SourceOptions, time_at: TimeAt) -> None:
        self._time_at = time_at
        self._options = options
        self._strict = options.fail_on_data_loss
        self._filter = ",".join(options.subjects)

    def first(
        self,
        bound: Bound,
        state: StreamState,
        seq_at: SeqAt,
        seq_of_last: SeqOfLast | None = None,
    ) -> int:
        """Return the start of a read without a previous offset.

        Raises `DataLossError` as `check_start` does, and `OptionError` as `within` and
        `Bound.resolve` do.
        """
        start = bound.resolve(state, seq_at, seq_of_last)
        self.check_start(bound, start, state)
        return self.within(bound, start, state)

    def check_start(self, bound: Bound, start: int, state: StreamState) -> None:
        """Raise `DataLossError` in a strict read if messages from sequence `start` on were lost.

        Only a start that the user gave as a sequence is checked.
        """
        if not (self._strict and bound.is_explicit and start < state.first):
            return
        if reason := why_lost(state, start, None):
            raise DataLossError(
                f"stream {state.name}: startingOffsets is sequence {start}, but the first sequence"
                f" left is {state.first}, and {reason}{_GO_ON}"
            )

    def within(self, bound: Bound, start: int, state: StreamState) -> int:
        """Return `start`, or the end of the stream if `start` is beyond it.

        Raises `OptionError` in a strict read for a start beyond the end. Such a start may be a
        sequence of an earlier stream of this name, and the read would miss messages of this stream.
        Also, the checks of later batches would take this stream for one that was restored to an
        earlier state.
        """
        if self._strict and start > state.next:
            raise OptionError(
                bound.option,
                f"stream {state.name}: the start is sequence {start}, but the stream ends at"
                f" {state.next - 1}; use 'latest' to begin there, or 'earliest' if the stream was"
                " re-created",
            )
        return min(start, state.next)

    def stands_at(self, position: Position, state: StreamState) -> int:
        """Return the sequence at which a pipeline with the position `position` continues.

        If the stream is not the stream of `position`, raises `DataLossError` in a strict read;
        otherwise the pipeline continues at the first message of the stream.
        """
        reason = why_other(position, state, self._time_at)
        if reason is None:
            return position.next
        if self._strict:
            raise DataLossError(f"{reason}; {advice(position, state)}")
        return state.first

    def begin(self, start: Offset, states: Mapping[str, StreamState]) -> dict[str, Position]:
        """Return the start of the next batch in each stream of the read.

        `start` is the previous offset. For a stream that was added or replaced, or whose unread
        messages were removed, `since` in the returned position is the first sequence of the
        batch.

        Raises `CheckpointError` or `DataLossError` in a strict read that cannot continue at
        `start`.
        """
        removed = start.streams.keys() - states.keys()
        if removed and self._strict:
            raise CheckpointError(
                f"the checkpoint also has stream {min(removed)}, {self._why_removed()}{_GO_ON}"
            )
        return {name: self._begin(start.streams.get(name), state) for name, state in states.items()}

    def _begin(self, position: Position | None, state: StreamState) -> Position:
        """Return the start of the next batch in one stream, as `begin` does for all streams."""
        # A stream that was added or replaced is read from its first message. Spark's Kafka source
        # reads new partitions in the same way.
        if position is None or self._is_other(position, state):
            return self._start_of_stream(state)
        self.check_filter(position, state.name)
        if state.first > position.next:
            self._refuse_overtaken(position.next, state, position.mark)
            # Continue at the first message, so that limits do not count the removed messages and
            # give empty batches. In a strict read, the batch also covers the removed sequences, so
            # that no sequence is left out between two batches.
            restart = self._start_of_stream(state)
            return evolve(restart, since=position.next) if self._strict else restart
        # The first batch contains its own start, because `latest` and times before now would
        # resolve to another start when the batch is repeated.
        since = position.next if position.is_initial else None
        # Update the creation time, because the stream may be a copy of the previous one.
        return evolve(position, since=since, created=state.created)

    def check_filter(self, position: Position, name: str) -> None:
        """Raise `CheckpointError` in a strict read whose filters differ from those of `position`.

        Messages of the stream `name` that the old filters skipped would never be read. A batch that
        was planned with the old filters would have other rows when it is repeated.
        """
        if self._strict and not same_filter(position.filter, self._filter):
            raise CheckpointError(
                f"stream {name}: the checkpoint was created with the filter"
                f" {position.filter or '>'!r}, now it is {self._filter or '>'!r}, and messages"
                f" before sequence {position.next} that the old one skipped would never be read:"
                f" {instead_of(position.filter, self._options)}"
            )

    def _start_of_stream(self, state: StreamState) -> Position:
        return Position(state.first, state.created, self._filter, since=state.first)

    def check_batch(
        self,
        low: int,
        position: Position,
        state: StreamState | None,
        name: str,
        before: Mark | None = None,
    ) -> StreamState | None:
        """Check the stream `name` of a planned batch, and return its state.

        The batch begins at sequence `low` and ends at `position`. `state` is the state of the
        stream, or `None` if the read no longer has the stream. `before` is the stream's last
        message when the previous batch was planned.

        Returns `None` if the stream was replaced, or no longer matches a pattern, and the read is
        not strict. Then this batch must read no messages of the stream, because the next batch
        begins at the first message.

        Raises `CheckpointError` if `state` is `None`, and `DataLossError` in a strict read if
        the stream was replaced or messages were lost.
        """
        if state is None and self._options.pattern is not None and not self._strict:
            return None
        if state is None:
            raise CheckpointError(
                f"the unfinished batch reads stream {name}, {self._why_removed()}; it must be there"
                " until the batch is finished"
            )
        if self._is_other(position, state):
            return None
        if state.first > low:
            self._refuse_overtaken(low, state, before)
        return state

    def _why_removed(self) -> str:
        if self._options.pattern is None:
            return "which the option 'stream' no longer names"
        return f"which does not exist or does not match {self._options.pattern!r}"

    def _is_other(self, position: Position, state: StreamState) -> bool:
        """Return whether a stream is not the stream of `position`.

        In a strict read, raises `DataLossError` instead of returning true.
        """
        reason = why_other(position, state, self._time_at)
        if reason is not None and self._strict:
            raise DataLossError(
                f"{reason}; write to a new table with its own checkpoint, because the old one may"
                " have some of its messages"
            )
        return reason is not None

    def _refuse_overtaken(self, low: int, state: StreamState, mark: Mark | None) -> None:
        """Raise `DataLossError` in a strict read if messages from `low` on were lost."""
        if not self._strict:
            return
        if reason := why_lost(state, low, not_before(low, state, mark)):
            raise DataLossError(
                f"stream {state.name}: messages from {low} to {state.first - 1} were removed before"
                f" they were read: {reason}{_GO_ON}"
            )
