"""What a task reads, and how: direct get for small ranges, a consumer for large ones."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from js_sync import Credentials, JetStream, JetStreamError, PermissionDenied, Stream
from tests.soak import LONGEST
from tests.tuned import Tuned
from tests.unhurried import connected
from twinstream.core.deadline import Deadline
from twinstream.errors import AuthenticationFailed, ConnectionFailed
from twinstream.models import ConsumerConfig, StreamConfig, StreamSource
from twinstream.spark.errors import DataLossError, OptionError
from twinstream.spark.landing.land_job import ranges_of
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, Way, read_way
from twinstream.spark.source.range_partition import range_partition
from twinstream.spark.source.range_task import read_batches, read_pages
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.spark.source.reader import JetStreamReader
from twinstream.spark.source.stream_reader import JetStreamStreamReader
from twinstream.spark.source.stream_state import stream_state
from twinstream.testing import NatsServer

USERS = """
authorization {
  users: [
    { user: all, password: a }
    { user: reader, password: b, permissions: {
        publish: ["$JS.API.DIRECT.GET.>", "$JS.API.STREAM.>"], subscribe: "_INBOX.>" } }
  ]
}
"""

Make = Callable[..., Stream]
Fill = Callable[..., None]


def options(server: NatsServer, stream: str, **given: str) -> SourceOptions:
    return SourceOptions.parse({"nats.servers": server.url, "stream": stream, **given})


def rows(options: SourceOptions, part: SequenceRange) -> list[tuple[int, str, bytes]]:
    batcher = Batcher(options, ReadColumns(options).columns)
    found = [row for batch in read_batches(options, batcher, part) for row in batch.to_pylist()]
    return [(row["seq"], row["subject"], row["data"]) for row in found]


def test_a_task_reads_the_stream_and_not_its_mirror(
    server: NatsServer, make_stream: Make, fill: Fill, jet: JetStream
) -> None:
    stream = make_stream()
    fill(stream, range(40))
    origin = StreamSource(name=stream.name, opt_start_seq=21)
    mirror = jet.create_stream(StreamConfig(name=f"{stream.name}-M", mirror=origin))
    deadline = Deadline.after(LONGEST)
    while mirror.info().state.messages < 20:
        assert not deadline.expired()
    for _ in range(12):  # who answers is drawn at random
        found = rows(options(server, stream.name), SequenceRange(stream.name, 1, 41, "direct"))
        assert [seq for seq, _, _ in found] == list(range(1, 41))


@pytest.mark.parametrize("way", ["direct", "consumer"])
def test_pages_are_complete_for_any_content(
    server: NatsServer,
    jet: JetStream,
    make_stream: Make,
    fill: Fill,
    tuned: Tuned,
    way: Way,
) -> None:
    tuned("least page", 1)
    stream = make_stream()
    subject = f"{stream.name.lower()}.a"
    payloads = [
        b"",
        b"\r\n",
        b"\r\nMSG a 1 2\r\n",
        b"x" * 70_000,
        *(b"%d" % at for at in range(96)),
    ]
    fill(stream, payloads, subjects=["a"])
    for at in range(100):  # and some with headers, which end a page of one form
        jet.publish(subject, b"h", headers={"At": str(at)} if at % 30 < 20 else None)
    stream.delete_message(7)
    expected = [(seq, subject, data) for seq, data in enumerate([*payloads, *([b"h"] * 100)], 1)]
    del expected[6]
    part = SequenceRange(stream.name, 1, 201, way)
    for page in ("7", "64", "20000"):
        assert rows(options(server, stream.name, fetchMessages=page), part) == expected


def test_a_large_range_is_read_by_a_consumer_where_there_may_be_one(
    server: NatsServer,
    jet: JetStream,
    make_stream: Make,
    fill: Fill,
    tuned: Tuned,
) -> None:
    stream = make_stream(max_consumers=1)
    fill(stream, [b"x"] * 30)
    given = options(server, stream.name)
    assert not SequenceRange(stream.name, 1, 31, "either").by_consumer
    tuned("large plan", 30)
    part = SequenceRange(stream.name, 1, 31, "either")
    assert part.by_consumer
    assert len(rows(given, part)) == 30
    assert list(stream.consumer_names()) == []
    # The stream takes no second consumer: direct get reads on, and alone where nothing else is
    # wished the refusal is told.
    stream.create_consumer(ConsumerConfig(name="the-one"))
    assert len(rows(given, part)) == 30
    with pytest.raises(JetStreamError, match="maximum consumers"):
        rows(given, SequenceRange(stream.name, 1, 31, "consumer"))


def test_user_without_permission_for_consumers_reads_by_direct_get(
    tuned: Tuned,
) -> None:
    tuned("large plan", 1)
    with NatsServer(USERS) as server:
        with connected(server.url, credentials=Credentials(user="all", password="a")) as nc:
            jet = nc.jetstream()
            jet.create_stream(StreamConfig(name="S", subjects=["s"], allow_direct=True))
            for _ in range(5):
                jet.publish("s", b"x")
        user = {"nats.user": "reader", "nats.password": "b"}
        given = SourceOptions.parse({"nats.servers": server.url, "stream": "S", **user})
        assert len(rows(given, SequenceRange("S", 1, 6, "either"))) == 5
        with pytest.raises(PermissionDenied):
            rows(given, SequenceRange("S", 1, 6, "consumer"))


def test_only_streams_with_limits_are_read_by_a_consumer_unasked(
    server: NatsServer, jet: JetStream, make_stream: Make
) -> None:
    def way(stream: Stream, **given: str) -> Way:
        return read_way(options(server, stream.name, **given), stream_state(jet, stream.name))

    assert way(make_stream()) == "either"
    assert way(make_stream(), readMode="consumer") == "consumer"
    assert way(make_stream(), readMode="direct") == "direct"
    assert way(make_stream(retention="workqueue")) == "direct"
    assert way(make_stream(retention="interest")) == "direct"
    assert way(make_stream(allow_direct=False)) == "consumer"
    with pytest.raises(OptionError, match="needs allow_direct"):
        way(make_stream(allow_direct=False), readMode="direct")
    for config, mode in (({"allow_direct": False}, "auto"), ({}, "consumer")):
        with pytest.raises(OptionError, match="is a work queue, which accepts no consumer without"):
            way(make_stream(retention="workqueue", **config), readMode=mode)


@pytest.mark.parametrize("way", ["direct", "consumer"])
def test_messages_removed_during_a_read_are_reported(
    server: NatsServer, make_stream: Make, fill: Fill, way: Way
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 300)
    part = SequenceRange(stream.name, 1, 301, way)
    given = {"fetchMessages": "50"}
    pages = read_pages(options(server, stream.name, **given), part)
    assert len(next(pages)) == 50
    stream.purge(before_seq=251)
    with pytest.raises(DataLossError, match="were read: its limits or a purge removed them"):
        list(pages)
    easy = options(server, stream.name, failOnDataLoss="false", **given)
    assert sum(map(len, read_pages(easy, part))) == 50


def test_the_end_of_a_range_may_go_too(server: NatsServer, make_stream: Make, fill: Fill) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 100)
    pages = read_pages(
        options(server, stream.name, fetchMessages="10"),
        SequenceRange(stream.name, 1, 101, "direct"),
    )
    next(pages)
    stream.purge()
    with pytest.raises(DataLossError, match="to 100 were removed"):
        list(pages)


def test_gaps_of_deletes_and_filters_are_no_loss(
    server: NatsServer, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 100, subjects=["a", "b"])
    for seq in (10, 11, 100):
        stream.delete_message(seq)
    whole = SequenceRange(stream.name, 1, 101, "direct")
    assert sum(map(len, read_pages(options(server, stream.name), whole))) == 97
    only = options(server, stream.name, subject=f"{stream.name.lower()}.b", fetchMessages="10")
    pages = read_pages(only, whole)
    count = sum(len(next(pages)) for _ in range(4))
    stream.purge(before_seq=3)  # all that went is read, or of no concern to the filter
    assert count + sum(map(len, pages)) == 48


@pytest.mark.parametrize(("most", "links"), [(9, 3), (2, 2)])
def test_requests_do_not_wait_for_pages_if_another_connection_is_possible(
    most: int, links: int
) -> None:
    with NatsServer(f"max_connections: {most}") as server, connected(server.url) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="S", subjects=["s.*"], allow_direct=True))
        for at in range(40):
            jet.publish(f"s.{at % 2}", b"x")
        given = options(server, "S", subject="s.1", fetchMessages="5")
        pages = read_pages(given, SequenceRange("S", 1, 41, "direct"))
        assert len(next(pages)) == 5
        with urlopen(f"{server.monitoring_url}/varz") as answer:
            assert json.load(answer)["connections"] == links
        assert sum(map(len, pages)) == 15


def planned_batch(given: SourceOptions) -> list[SequenceRange]:
    found = JetStreamReader(given, ReadColumns(given).columns).partitions()
    return [range_partition(each).value for each in found]


def planned_query(given: SourceOptions) -> list[SequenceRange]:
    reader = JetStreamStreamReader(given, ReadColumns(given).columns)
    start = reader.initialOffset()
    found = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    reader.stop()
    return [range_partition(each).value for each in found]


def planned_landing(given: SourceOptions) -> list[SequenceRange]:
    with Leader(given) as leader:
        (state,) = leader.states()
        return ranges_of(leader, given, 1, Position(state.next, state.created, mark=state.mark))


def test_a_task_waits_for_a_server_that_starts_again(
    server_factory: Callable[..., NatsServer],
) -> None:
    server = server_factory()
    with connected(server.url) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="S", subjects=["s"], allow_direct=True))
        for _ in range(5):
            jet.publish("s", b"x")
    server.kill()
    given, part = options(server, "S"), SequenceRange("S", 1, 6, "direct")
    listener = socket.create_server(("127.0.0.1", server.port))

    def start_again() -> None:
        with listener:
            listener.accept()[0].close()
        server.start()

    with ThreadPoolExecutor() as pool:
        started = pool.submit(start_again)
        assert len(rows(given, part)) == 5
        assert started.done()


def test_a_task_does_not_wait_in_vain(server_factory: Callable[..., NatsServer]) -> None:
    server, part = server_factory(USERS), SequenceRange("S", 1, 6, "direct")
    user = {"nats.user": "reader", "nats.password": "wrong", "fetchTimeoutMs": "100"}
    with pytest.raises(AuthenticationFailed):
        rows(options(server, "S", **user), part)
    server.kill()
    with pytest.raises(ConnectionFailed, match="refused"):
        rows(options(server, "S", **user), part)


@pytest.mark.parametrize("plan", [planned_batch, planned_query, planned_landing])
def test_range_of_a_recreated_stream_is_not_read(
    server: NatsServer,
    jet: JetStream,
    make_stream: Make,
    fill: Fill,
    plan: Callable[[SourceOptions], list[SequenceRange]],
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 5)
    given = {"startingOffsets": "earliest"}
    strict, easy = (
        options(server, stream.name, failOnDataLoss=loss, **given) for loss in ("true", "false")
    )
    (part,) = plan(strict)
    assert len(rows(strict, part)) == 5
    jet.delete_stream(stream.name)
    fill(jet.create_stream(stream.cached_info.config), [b"y"] * 9)
    with pytest.raises(DataLossError, match="was deleted and re-created; load the DataFrame"):
        rows(strict, part)
    assert len(rows(easy, part)) == 5


def test_stream_recreated_during_a_read_is_reported(
    server: NatsServer, jet: JetStream, make_stream: Make, fill: Fill
) -> None:
    stream = make_stream()
    fill(stream, [b"x"] * 300)
    given = options(server, stream.name, fetchMessages="50")
    (part,) = planned_batch(given)
    pages = read_pages(given, part)
    next(pages)
    jet.delete_stream(stream.name)
    fill(jet.create_stream(stream.cached_info.config), [b"y"] * 120)
    with pytest.raises(DataLossError, match="was deleted and re-created"):
        list(pages)
