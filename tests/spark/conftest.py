"""One Spark session for the whole folder, and streams on the shared server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import js_sync
from js_sync import JetStream, PublishRequest, Stream
from tests.proxy_faults import misleading
from tests.proxy_process import proxy_process
from tests.quick_java import quick_session
from tests.s3_server import S3Server
from tests.spark.processes import SparkProcess, connect_path
from tests.unhurried import READ_PATIENTLY, connected
from twinstream.models import StreamConfig
from twinstream.spark.session.worker_python import worker_python
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from twinstream.spark.session.session import local_session

    settings = {
        **quick_session(),
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    session = local_session("tests", master="local[2,4]", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """A Spark Connect server where this package is installed; clients call at `found`."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2,4]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    with SparkProcess(
        tmp_path_factory.mktemp("connect"),
        "connect",
        r"(?<=Connect server started at: )127\.0\.0\.1:\d+",
        [*command, "spark-internal"],
        PYTHONPATH=connect_path(),
        PYSPARK_PYTHON=worker_python(),
    ) as process:
        yield process


@pytest.fixture(scope="session")
def server() -> Iterator[NatsServer]:
    """One real server with JetStream, shared by all tests of the process, as the session is."""
    with NatsServer(version=os.environ.get("TWINSTREAM_SERVER")) as running:
        yield running


@pytest.fixture(scope="session")
def misled(s3: S3Server) -> Iterator[list[str]]:
    """The addresses of proxies before the store and the catalog that answer some writes wrongly."""
    with proxy_process([s3.url, s3.catalog_url], misleading, 1.5) as urls:
        yield urls


@pytest.fixture(scope="session")
def jet(server: NatsServer) -> Iterator[JetStream]:
    with connected(server.url) as nc:
        yield nc.jetstream()


@pytest.fixture
def make_stream(jet: JetStream) -> Callable[..., Stream]:
    """Makes a stream of its own for a test; its subjects are `<name in lower case>.>`."""

    def make(**config: Any) -> Stream:
        name = f"SPARK{next(_NUMBERS)}"
        given = {"subjects": [f"{name.lower()}.>"], "allow_direct": True, **config}
        return jet.create_stream(StreamConfig(name=name, **given))

    return make


@pytest.fixture
def fill(jet: JetStream) -> Callable[..., None]:
    """Publishes payloads into a stream, below subjects in turn."""

    def publish(
        stream: Stream, payloads: Sequence[object], *, subjects: Sequence[str] = ("a", "b", "c")
    ) -> None:
        requests = [
            PublishRequest(
                subject=f"{stream.name.lower()}.{subjects[at % len(subjects)]}",
                data=each if isinstance(each, bytes) else json.dumps(each).encode(),
            )
            for at, each in enumerate(payloads)
        ]
        for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js_sync.PublishFailure), outcome

    return publish


@pytest.fixture
def read(spark: SparkSession, server: NatsServer) -> Callable[..., DataFrame]:
    """Reads streams with options given as keywords; `schema` selects columns."""

    def load(stream: str, schema: Any = None, **options: Any) -> DataFrame:
        reader = spark.read.format("jetstream").option("nats.servers", server.url)
        reader = reader.options(stream=stream, **READ_PATIENTLY, **options)
        return (reader if schema is None else reader.schema(schema)).load()

    return load


@pytest.fixture
def seqs(read: Callable[..., DataFrame]) -> Callable[..., list[int]]:
    """Sequences of a read, ascending."""

    def collect(stream: str, **options: Any) -> list[int]:
        rows = read(stream, schema="seq bigint", **options).collect()
        return sorted(row["seq"] for row in rows)

    return collect
