"""Whether a stream still is what the checkpoint remembers, and holds what was promised.

Five cases are told apart: messages that were lost before they were read (`removal`), a stream that
was deleted and made again, one that was put back to an earlier state and keeps its time of
creation, a filter that was changed, and streams that were added to or taken out of the read.
With ``failOnDataLoss=false`` the read goes on with what there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from twinstream.spark.source.bounds import Bound, SeqAt
from twinstream.spark.errors import CheckpointError, DataLossError, OptionError
from twinstream.spark.source.filters import same_filter
from twinstream.spark.source.stream_mark import Mark, TimeAt
from twinstream.spark.source.offsets import Offset, Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_identity import advice, why_other
from twinstream.spark.source.removal import not_before, why_lost
from twinstream.spark.source.stream_state import StreamState

__all__ = ["Continuity"]

_GO_ON = "; set failOnDataLoss=false to go on with what is there"


class Continuity:
    """Checks of one read; ``time_at`` looks up when a message was stored."""

    def __init__(self, options: SourceOptions, time_at: TimeAt) -> None:
        self._time_at = time_at
        self._strict = options.fail_on_data_loss
        self._filter = ",".join(options.subjects)

    def first(self, bound: Bound, state: StreamState, seq_at: SeqAt) -> int:
        """Return where a read begins that nothing was read before.

        Raises what `check_start` and `within` do, and what a bound in times does.
        """
        start = bound.resolve(state, seq_at)
        self.check_start(bound, start, state)
        return self.within(bound, start, state)

    def check_start(self, bound: Bound, start: int, state: StreamState) -> None:
        """Refuse to start at a sequence that was asked for, if messages from there on are lost."""
        if not (self._strict and bound.is_explicit and start < state.first):
            return
        if reason := why_lost(state, start, None):
            raise DataLossError(
                f"stream {state.name}: startingOffsets asks for sequence {start}, but the first one"
                f" left is {state.first}, and {reason}{_GO_ON}"
            )

    def within(self, bound: Bound, start: int, state: StreamState) -> int:
        """Return where a read begins; raises `OptionError` for a start beyond the end.

        Whoever kept that sequence may have read another stream of this name, and would miss what
        this one holds. Later batches of a query could not tell it from a stream that was put back.
        """
        if self._strict and start > state.next:
            raise OptionError(
                bound.option,
                f"stream {state.name}: asks for sequence {start}, but the stream ends at"
                f" {state.next - 1}; 'latest' begins there, 'earliest' reads a stream that was made"
                " anew",
            )
        return min(start, state.next)

    def stands_at(self, position: Position, state: StreamState) -> int:
        """Return the first sequence to come for a pipeline that stands at ``position``.

        Raises `DataLossError` where the sequences below it are not those that were landed.
        """
        reason = why_other(position, state, self._time_at)
        if reason is None:
            return position.next
        if self._strict:
            raise DataLossError(f"{reason}; {advice(position, state)}")
        return state.first

    def begin(self, start: Offset, states: Mapping[str, StreamState]) -> dict[str, Position]:
        """Return where the next batch begins in each stream of the read.

        ``since`` is set where the previous offset does not say it.
        """
        gone = start.streams.keys() - states.keys()
        if gone and self._strict:
            raise CheckpointError(
                f"the checkpoint also holds stream {min(gone)}, which the option 'stream' does not"
                f" name any more{_GO_ON}"
            )
        return {name: self._begin(start.streams.get(name), state) for name, state in states.items()}

    def _begin(self, position: Position | None, state: StreamState) -> Position:
        # As with a new partition of a Kafka topic: all that it holds is new.
        if position is None or self._is_other(position, state):
            return self._anew(state)
        if self._strict and not same_filter(position.filter, self._filter):
            raise CheckpointError(
                f"stream {state.name}: the checkpoint was made with the filter"
                f" {position.filter or '>'!r}, now it is {self._filter or '>'!r}; what was passed"
                f" over before would never be read: use a new checkpoint{_GO_ON}"
            )
        if state.first > position.next:
            self._refuse_overtaken(position.next, state, position.mark)
            # Without empty batches for what was removed; in strict reads ranges follow each other.
            anew = self._anew(state)
            return evolve(anew, since=position.next) if self._strict else anew
        # A copy of the stream has another time of creation.
        return evolve(position, since=None, created=state.created)

    def _anew(self, state: StreamState) -> Position:
        return Position(state.first, state.created, self._filter, since=state.first)

    def check_batch(
        self,
        low: int,
        position: Position,
        state: StreamState | None,
        name: str,
        before: Mark | None = None,
    ) -> StreamState | None:
        """Return the state of a stream that a batch reads, after it was planned.

        ``before`` is the last message that the stream had when the batch before was planned.

        The state is None if the stream is another one by now and going on is allowed: what it holds
        under these sequences belongs to the next batch, which begins at its first message.
        """
        if state is None:
            raise CheckpointError(
                f"the batch that was begun reads stream {name}, which the option 'stream' does not"
                " name any more; name it until the batch is finished"
            )
        if self._is_other(position, state):
            return None
        if state.first > low:
            self._refuse_overtaken(low, state, before)
        return state

    def _is_other(self, position: Position, state: StreamState) -> bool:
        """Tell whether a stream is not the one of ``position``; raises unless that is allowed."""
        reason = why_other(position, state, self._time_at)
        if reason is not None and self._strict:
            raise DataLossError(
                f"{reason}; begin a new checkpoint, and a new table if the old one may hold some of"
                " its messages"
            )
        return reason is not None

    def _refuse_overtaken(self, low: int, state: StreamState, mark: Mark | None) -> None:
        if not self._strict:
            return
        if reason := why_lost(state, low, not_before(low, state, mark)):
            raise DataLossError(
                f"stream {state.name}: messages from {low} to {state.first - 1} were removed before"
                f" they were read: {reason}{_GO_ON}"
            )
