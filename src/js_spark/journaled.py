"""Where to go on behind what a journal says is landed."""

from __future__ import annotations

from js_spark.errors import DataLossError
from js_spark.stream_state import StreamState

__all__ = ["start_behind"]


def start_behind(state: StreamState, created: str, end: int, *, strict: bool) -> int:
    """Return the first sequence to land behind ``end`` of the stream made at ``created``.

    Raises `DataLossError` if ``strict`` where the stream is another one by now, was put back to an
    earlier state, or removed messages before they were landed.
    """
    if created != state.created:
        _refuse(
            strict,
            f"stream {state.name} was made at {state.created}, the journal is of one made at"
            f" {created}: it was deleted and made again; land into a new folder, or set"
            " failOnDataLoss=false to go on with the new one from its beginning",
        )
        return state.first
    if end > state.next:
        _refuse(
            strict,
            f"stream {state.name} ends at {state.next - 1}, the journal at {end - 1}: the stream"
            " was put back to an earlier state, and what it gets now has sequences that were landed"
            " before; land into a new folder, or set failOnDataLoss=false to go on from its"
            " beginning",
        )
        return state.first
    if state.first > end:
        _refuse(
            strict,
            f"stream {state.name}: sequences {end} to {state.first - 1} went before they were"
            " landed; set failOnDataLoss=false to go on with what is left",
        )
    return max(end, state.first)


def _refuse(strict: bool, reason: str) -> None:
    if strict:
        raise DataLossError(reason)
