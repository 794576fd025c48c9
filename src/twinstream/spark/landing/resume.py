"""Find the start of the next batch after the last batch of a journal."""

from __future__ import annotations

from twinstream.lake.stream_mark import TimeAt
from twinstream.spark.errors import DataLossError
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.removed_messages import not_before, why_lost
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.source.stream_state import StreamState

__all__ = ["start_behind"]


def start_behind(state: StreamState, end: Position, time_at: TimeAt, *, strict: bool) -> int:
    """Return the first sequence to land after `end`, the position of the last landed batch.

    `time_at` looks up when a message was stored. If `strict` is true, raises `DataLossError` if
    the stream was re-created, was restored to an earlier state, or lost messages before they were
    landed. Otherwise, landing continues with the messages that the stream has.
    """
    if reason := why_other(end, state, time_at):
        if strict:
            raise DataLossError(f"{reason}; land it into a new folder")
        return state.first
    if state.first > end.next and strict:
        reason = why_lost(state, end.next, not_before(end.next, state, end.mark))
        if reason is not None:
            raise DataLossError(
                f"stream {state.name}: sequences {end.next} to {state.first - 1} were removed"
                f" before they were landed: {reason}; set failOnDataLoss=false to continue with the"
                " messages that are left"
            )
    return max(end.next, state.first)
