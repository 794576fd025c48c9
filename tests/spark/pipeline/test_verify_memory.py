"""The memory of `twinstream pipeline verify` does not grow with the messages of a stream.

The command runs in a process of its own, and the memory is that of all processes that it starts.
`make soak` verifies 5,000,000 messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from js_sync import JetStream, PublishFailure, PublishRequest, Stream
from tests.bench.verify import Measured, measured
from tests.soak import LONG, state
from tests.spark.pipelines import SINKS, config_of
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

# MiB of all processes together, those of libraries included.
MOST = 200

# MiB that the allocators keep of windows that are compared. This is no more after some windows.
NOISE = 24

MakeStream = Callable[..., Stream]


def grown(
    jet: JetStream, stream: Stream, url: str, folder: Path, sink: str, counts: Sequence[int]
) -> list[Measured]:
    """Land a stream that grows to these counts of messages, and verify it each time."""
    source = (
        f'stream = "{stream.name}"\ntable = "orders"\nmax_messages = 50_000\n'
        "options = {minPartitions = 1}\n"  # a batch is landed in this process
    )
    config = config_of(folder, sink, url, source, engine="local")
    subject, stored, found = f"{stream.name.lower()}.a", 0, list[Measured]()
    for count in counts:
        requests = (PublishRequest(subject=subject, data=b"{}") for _ in range(count - stored))
        for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, PublishFailure), outcome
        stored = count
        assert run(None, config, once=True) == {}
        found.append(measured(folder, "verify"))
        state(f"verify of {count:,} messages in {sink} tables: {found[-1]}")
    return found


def check(found: list[Measured]) -> None:
    assert max(each.peak for each in found) < MOST, found
    assert found[-1].own - found[0].own < NOISE, found


def test_four_times_the_messages_take_no_more_memory(
    jet: JetStream, make_stream: MakeStream, server: NatsServer, tmp_path: Path
) -> None:
    """Those of two windows, and those of eight."""
    check(grown(jet, make_stream(), server.url, tmp_path, "delta", [100_000, 400_000]))


@pytest.mark.skipif(not LONG, reason="a part of make soak")
@pytest.mark.parametrize("sink", SINKS)
def test_soak_millions_of_messages_take_no_more_memory(
    jet: JetStream, make_stream: MakeStream, server: NatsServer, tmp_path: Path, sink: str
) -> None:
    counts = [400_000, 1_000_000, 5_000_000]
    check(grown(jet, make_stream(), server.url, tmp_path, sink, counts))
