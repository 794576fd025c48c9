"""Bounds by time, against real streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from js_models import Timestamp
from js_sync import JetStream, Stream


def time_of(stream: Stream, seq: int) -> str:
    return Timestamp.of(stream.get_message(seq).time).rfc3339()


def test_bounds_by_time(
    seqs: Callable[..., list[int]], make_stream: Callable[..., Stream], jet: JetStream
) -> None:
    stream = make_stream()
    # One at a time, so that each has a time of its own.
    for _ in range(6):
        jet.publish(f"{stream.name.lower()}.a", b"1")
    given: dict[str, Any] = {"startingTimestamp": time_of(stream, 3)}
    assert seqs(stream.name, **given) == [3, 4, 5, 6]
    given["endingTimestamp"] = time_of(stream, 5)
    assert seqs(stream.name, **given) == [3, 4]
    assert seqs(stream.name, endingTimestamp="4102444800000") == [1, 2, 3, 4, 5, 6]
    late = {"startingTimestamp": "4102444800000", "startingOffsetsByTimestampStrategy": "latest"}
    assert seqs(stream.name, **late) == []
