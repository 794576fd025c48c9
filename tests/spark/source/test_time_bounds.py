"""Bounds by time, against real streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from js_sync import JetStream, Stream
from twinstream.models import Timestamp
from twinstream.spark.errors import OptionError
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.testing import NatsServer


def time_of(stream: Stream, seq: int) -> str:
    return Timestamp.of(stream.get_message(seq).time).rfc3339()


def test_times_bound_the_read(
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
    assert seqs(stream.name, startingTimestamp="-1d") == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    assert seqs(stream.name, endingTimestamp="-1d") == []
    assert seqs(stream.name, startingOffsets="last 2") == [5, 6]
    late = {"startingTimestamp": "4102444800000", "startingOffsetsByTimestampStrategy": "latest"}
    assert seqs(stream.name, **late) == []


@pytest.mark.parametrize(
    ("time", "start", "end"),
    [
        ("1600-01-01T00:00:00Z", 1, 1),
        ("2262-04-11T23:47:17Z", None, 4),
        ("2300-01-01T00:00:00Z", None, 4),
        ("9999-12-31T23:59:59Z", None, 4),
        ("2261-01-01T00:00:00Z", None, 4),
        ("1700-01-01T00:00:00Z", 1, 1),
    ],
)
def test_times_beyond_the_clock_of_the_server(
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
    time: str,
    start: int | None,
    end: int,
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 3)
    given = {"nats.servers": server.url, "stream": stream.name}
    given |= {"startingTimestamp": time, "endingTimestamp": time}
    options = SourceOptions.parse(given)
    assert options.start is not None
    assert options.end is not None
    with Leader(options) as leader:
        (state,) = leader.states()
        assert options.end.resolve(state, leader.seq_at) == end
        if start is None:
            with pytest.raises(OptionError, match="has no message at or after"):
                options.start.resolve(state, leader.seq_at)
        else:
            assert options.start.resolve(state, leader.seq_at) == start
