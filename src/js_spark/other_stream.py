"""Whether a stream is another one than that of which somebody noted how it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_spark.offsets import Position

if TYPE_CHECKING:
    from js_spark.mark import TimeAt
    from js_spark.stream_state import StreamState

__all__ = ["why_other"]


def why_other(position: Position, state: StreamState, time_at: TimeAt) -> str | None:
    """Return why a stream is not the one of ``position``, ``None`` if it is.

    It was made anew under its name, or put back to an earlier state and keeps its time of creation.
    ``time_at`` looks up when a message was stored.
    """
    if position.created != state.created:
        return (
            f"stream {state.name} was made at {state.created}, the one known before at"
            f" {position.created}: it was deleted and made again"
        )
    sign = _put_back(position, state, time_at)
    if sign is None:
        return None
    return (
        f"stream {state.name} {sign}: it was put back to an earlier state, and what it got since"
        " has sequences that other messages had before"
    )


def _put_back(position: Position, state: StreamState, time_at: TimeAt) -> str | None:
    """Return the sign that a stream was put back, ``None`` if there is none.

    It ends below what it had, or has another message where the mark was. A mark that is gone
    proves nothing: limits, a purge or somebody removed it. The message is asked for only if the
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
