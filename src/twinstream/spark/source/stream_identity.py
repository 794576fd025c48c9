"""Detect that a stream was re-created or restored since its position was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.spark.source.offsets import Position

if TYPE_CHECKING:
    from twinstream.lake.stream_mark import Mark, TimeAt
    from twinstream.spark.source.stream_state import StreamState

__all__ = ["advice", "why_other"]


def why_other(position: Position, state: StreamState, time_at: TimeAt) -> str | None:
    """Return why a stream is not the stream of `position`, or `None` if it is the same stream.

    A stream is not the same if it was deleted and re-created, or if it was restored to an earlier
    state and kept its creation time. A copy, such as a restored backup or a promoted mirror, has
    the same messages and another creation time. A copy counts as the same stream if it has the
    message that `position.mark` describes. `time_at` looks up when a message was stored.
    """
    if position.created != state.created:
        evidence = _no_copy(position.mark, state, time_at)
        if evidence is not None:
            return (
                f"stream {state.name} was created at {state.created}, the one read before at"
                f" {position.created}: it was deleted and re-created{evidence}"
            )
    evidence = _restored(position, state, time_at)
    if evidence is None:
        return None
    return (
        f"stream {state.name} {evidence}: it was restored to an earlier state, and messages stored"
        " since then reuse the sequences of others"
    )


def advice(position: Position, state: StreamState) -> str:
    """Return what the user of a pipeline can do if its stream is not the stream of `position`.

    The text is the end of an error message.
    """
    if position.created == state.created:
        return "land it into a new folder"
    return (
        "land it into a new folder, or, if it is a copy of the previous stream, continue after the"
        " landed messages with twinstream pipeline run --accept-stream"
    )


def _no_copy(mark: Mark | None, state: StreamState, time_at: TimeAt) -> str | None:
    """Return why a stream is not accepted as a copy, or `None` if it has the marked message.

    The text continues the sentence of an error. If `mark` is `None`, the text is empty, because
    there is no message to compare.
    """
    if mark is None:
        return ""
    if mark == state.mark:
        return None
    time = time_at(state.name, mark.seq)
    if time == mark.time:
        return None
    if time is None:
        return f" (it may be a copy, but it has no message {mark.seq} to compare)"
    return f" with other messages (at {mark.seq}, one stored at {time} instead of {mark.time})"


def _restored(position: Position, state: StreamState, time_at: TimeAt) -> str | None:
    """Return the evidence that a stream was restored to an earlier state, or `None`.

    There is evidence if the stream ends below a sequence that it had before, or if the message at
    the mark's sequence has another time than the mark. A missing message is no evidence, because
    limits, a purge or a delete may have removed it. If the mark is still the last message of the
    stream, no message is looked up.
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
