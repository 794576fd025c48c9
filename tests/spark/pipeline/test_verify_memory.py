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
from tests.s3_server import BUCKET, S3Server
from tests.soak import LONG, state
from tests.spark.pipelines import SINKS, write_config
from twinstream.spark.pipeline import read_config
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

# MiB of all processes together, those of libraries included.
MOST = 200

# MiB that the allocators keep of windows that are compared. This is no more after some windows.
NOISE = 24


@pytest.fixture
def stream(make_stream: Callable[..., Stream]) -> Stream:
    return make_stream()


@pytest.fixture
def folder(server: NatsServer, stream: Stream, tmp_path: Path) -> Callable[[str], Path]:
    """Make the folder of a pipeline with tables of a kind."""

    def make(sink: str) -> Path:
        source = (
            f'stream = "{stream.name}"\ntable = "orders"\nmax_messages = 50_000\n'
            "options = {minPartitions = 1}\n"  # a batch is landed in this process
        )
        return write_config(tmp_path, sink, server.url, source, engine="local").parent

    return make


@pytest.fixture
def on_s3(s3: S3Server, folder: Callable[[str], Path]) -> Callable[[str], Path]:
    """Make the folder of a pipeline with tables on S3."""

    def make(sink: str) -> Path:
        file = folder(sink) / "orders.toml"
        text = file.read_text().replace('"lake"', f'"s3://{BUCKET}/verified_{sink}"', 1)
        file.write_text(text + s3.toml("verified", catalog=sink == "iceberg"))
        return file.parent

    return make


def check(jet: JetStream, stream: Stream, folder: Path, counts: Sequence[int]) -> None:
    """Land a stream that grows to these counts of messages, and verify it each time."""
    config = read_config(folder / "orders.toml")
    subject, stored, found = f"{stream.name.lower()}.a", 0, list[Measured]()
    for count in counts:
        requests = (PublishRequest(subject=subject, data=b"{}") for _ in range(count - stored))
        for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, PublishFailure), outcome
        stored = count
        assert run(None, config, once=True) == {}
        found.append(measured(folder, "verify"))
        state(f"verify of {count:,} messages in {config.path} as {config.sink}: {found[-1]}")
    assert max(each.peak for each in found) < MOST, found
    assert found[-1].own - found[0].own < NOISE, found


def test_four_times_the_messages_take_no_more_memory(
    jet: JetStream, stream: Stream, folder: Callable[[str], Path]
) -> None:
    """Those of two windows, and those of eight."""
    check(jet, stream, folder("delta"), [100_000, 400_000])


# Messages of a soak.
MANY = [400_000, 1_000_000, 5_000_000]


@pytest.mark.skipif(not LONG, reason="a part of make soak")
@pytest.mark.parametrize("sink", SINKS)
def test_soak_millions_of_messages_take_no_more_memory(
    jet: JetStream, stream: Stream, folder: Callable[[str], Path], sink: str
) -> None:
    check(jet, stream, folder(sink), MANY)


@pytest.mark.skipif(not LONG, reason="a part of make soak")
@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_soak_millions_of_messages_on_s3_take_no_more_memory(
    jet: JetStream, stream: Stream, on_s3: Callable[[str], Path], sink: str
) -> None:
    check(jet, stream, on_s3(sink), MANY)
