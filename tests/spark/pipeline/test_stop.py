"""Pipelines that somebody asks to stop while their server is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.soak import LONGEST
from tests.spark.pipelines import config_of, counted
from tests.tuned import Tuned
from tests.unhurried import connected
from twinstream.errors import TwinstreamError
from twinstream.models import StreamConfig
from twinstream.spark.pipeline.pipeline_events import Ended, Happening
from twinstream.spark.pipeline.runner import run
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOR_EVER = {"fetchOffset.numRetries": "1000000", "fetchOffset.retryIntervalMs": "10"}


@pytest.fixture
def own_server() -> Iterator[NatsServer]:
    """A server with a stream S that holds a message; the test ends it."""
    with NatsServer() as server:
        with connected(server.url) as nc:
            jet = nc.jetstream()
            jet.create_stream(StreamConfig(name="S", subjects=["s.>"]))
            jet.publish("s.a", b"1")
        yield server


class PlanningInVain:
    """Asks to stop when a source has tried for a while to plan without a server."""

    def __init__(self, server: NatsServer) -> None:
        self._server, self._looks = server, 0

    def is_set(self) -> bool:
        if not self._server.running:
            self._looks += 1  # before each attempt of the source, too
        return self._looks > 50


def test_a_pipeline_that_only_plans_ends_without_its_server(
    spark: SparkSession, own_server: NatsServer, tmp_path: Path, tuned: Tuned
) -> None:
    tuned("pipeline patience", 10 * LONGEST)
    options = "\n".join(f'"{name}" = {value}' for name, value in FOR_EVER.items())
    source = f'stream = "S"\ntable = "t"\n[source.options]\n{options}'
    config = config_of(tmp_path, "parquet", own_server.url, source, every="100ms")
    heard: list[Happening] = []
    asked = PlanningInVain(own_server)

    def tell(happening: Happening) -> None:
        heard.append(happening)
        if counted(config.path / "t", "parquet", "seq") == (1, 1):
            own_server.kill()

    running = threading.Thread(target=lambda: run(spark, config, tell=tell, asked=asked))
    running.start()
    try:
        running.join(LONGEST)
        assert not running.is_alive()
    finally:
        own_server.restart()  # which also ends the planning
        running.join(LONGEST)
    assert heard[-1] == Ended("S")

    with connected(own_server.url) as nc:
        nc.jetstream().publish("s.a", b"2")
    assert run(spark, config, once=True) == {}
    assert counted(config.path / "t", "parquet", "seq") == (2, 2)


def test_leader_is_not_requested_again_at_the_end(own_server: NatsServer) -> None:
    given = {"nats.servers": own_server.url, "nats.requestTimeoutMs": "100", "stream": "S"}
    calls = iter([False, True])

    def is_to_end() -> bool:
        """Count the looks without the server: before, a busy one may need several requests."""
        return not own_server.running and next(calls)

    with Leader(SourceOptions.parse({**given, **FOR_EVER}), is_to_end) as leader:
        assert [each.name for each in leader.states()] == ["S"]
        own_server.kill()
        with pytest.raises(TwinstreamError):
            leader.states()
    assert list(calls) == []
