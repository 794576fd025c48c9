"""Detect that a stream is another one than that whose position was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.spark.source.offsets import Position

if TYPE_CHECKING:
    from twinstream.spark.source.stream_mark import Mark, TimeAt
    from twinstream.spark.source.stream_state import StreamState

__all__ = ["advice", "why_other"]


def why_other(position: Position, state: StreamState, time_at: TimeAt) -> str | None:
    """Return why a stream is not the one of ``position``, ``None`` if it is.

    It was made again under its name, or put back to an earlier state and keeps its time of
    creation. A copy has another time of creation and the same messages: a backup that was restored,
    or a mirror that was promoted. It is the same stream if the marked message is in it. ``time_at``
    looks up when a message was stored.
    """
    if position.created != state.created:
        sign = _no_copy(position.mark, state, time_at)
        if sign is not None:
            return (
                f"stream {state.name} was made at {state.created}, the one known before at"
                f" {position.created}: it was deleted and made again{sign}"
            )
    sign = _put_back(position, state, time_at)
    if sign is None:
        return None
    return (
        f"stream {state.name} {sign}: it was put back to an earlier state, and what it got since"
        " has sequences that other messages had before"
    )


def advice(position: Position, state: StreamState) -> str:
    """Return what to try where a pipeline's stream is another one."""
    if position.created == state.created:
        return "land it into a new folder"
    return (
        "land it into a new folder, or, if it is a copy of the stream before, go on behind what is"
        " landed with twinstream pipeline run --accept-stream"
    )


def _no_copy(mark: Mark | None, state: StreamState, time_at: TimeAt) -> str | None:
    """Return the sign that a stream is no copy, ``None`` if it has the marked message."""
    if mark is None:
        return ""
    if mark == state.mark:
        return None
    time = time_at(state.name, mark.seq)
    if time == mark.time:
        return None
    if time is None:
        return f" (whether it is a copy cannot be seen, as it has no message {mark.seq})"
    return f" with other messages (at {mark.seq}, one stored at {time} instead of {mark.time})"


def _put_back(position: Position, state: StreamState, time_at: TimeAt) -> str | None:
    """Return the sign that a stream was put back, ``None`` if there is none.

    It ends below what it had, or has another message where the mark was. A mark that is gone
    proves nothing: limits, a purge or a delete removed it. The message is looked up only if the
    stream got others since.
    """
    mark = position.mark
    had = position.next - 1 if mark is None else max(position.next - 1, mark.seq)
    if had >= state.next:
        return f"ends at {state.next - 1} and had sequence {had} before"
    if mark is None or mark == state.mark:
        return None
    time = time_at(state.name, mark.seq)
    if time is None or time == mark.time:
        return None
    return f"has at {mark.seq} a message stored at {time}, before it had one stored at {mark.time}"
