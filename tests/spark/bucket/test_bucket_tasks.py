"""Batch reads of a bucket whose keys change after planning: what each task gives."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import js_sync
from js_sync import JetStream, KeyValue
from tests.soak import LONGEST
from tests.unhurried import connected
from twinstream.core.deadline import Deadline
from twinstream.models import KeyValueConfig, StreamConfig, StreamSource
from twinstream.spark.bucket.key_range import KeyRange
from twinstream.spark.bucket.location import located
from twinstream.spark.bucket.reader import BucketReader
from twinstream.spark.errors import DataLossError, OptionError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.range_partition import range_partition
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.testing import NatsServer

Bucket = KeyValue[bytes]
Make = Callable[..., Bucket]

_NUMBERS = count(1)


@pytest.fixture
def make_bucket(jet: JetStream) -> Make:
    def make(**config: Any) -> Bucket:
        return jet.create_key_value(KeyValueConfig(bucket=f"tasks{next(_NUMBERS)}", **config))

    return make


class Read:
    """A batch read whose planning and reading a test does one after the other."""

    def __init__(self, server: NatsServer, bucket: str, **given: str) -> None:
        options = SourceOptions.parse({"nats.servers": server.url, "bucket": bucket, **given})
        options = located(options)
        self._reader = BucketReader(options, ReadColumns(options).columns)
        self.parts = self._reader.partitions()

    def rows(self) -> Iterator[dict[str, Any]]:
        for part in self.parts:
            for batch in self._reader.read(part):
                yield from batch.to_pylist()

    def found(self) -> list[tuple[str, bytes | None, int]]:
        rows = self.rows()
        return sorted((row["key"], row["value"], row["revision"]) for row in rows)


@pytest.fixture
def read(server: NatsServer) -> Callable[..., Read]:
    return lambda bucket, **given: Read(server, bucket.bucket, **given)


def put_all(jet: JetStream, bucket: Bucket, keys: int, value: bytes, start: int = 0) -> None:
    requests = [
        js_sync.PublishRequest(subject=f"$KV.{bucket.bucket}.k{at}", data=value)
        for at in range(start, keys)
    ]
    for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js_sync.PublishFailure), outcome


@pytest.mark.parametrize("parts", ["1", "3"])
def test_a_key_that_moves_before_it_is_read_is_not_missing(
    make_bucket: Make, read: Callable[..., Read], parts: str
) -> None:
    bucket = make_bucket()
    for at in range(6):
        bucket.put(f"k{at}", b"old")
    planned = read(bucket, minPartitions=parts)
    bucket.put("k0", b"new")
    bucket.delete("k3")
    bucket.put("k9", b"later than the snapshot")
    assert planned.found() == [
        ("k0", b"new", 7),
        ("k1", b"old", 2),
        ("k2", b"old", 3),
        ("k3", None, 8),
        ("k4", b"old", 5),
        ("k5", b"old", 6),
    ]
    assert len(planned.parts) == int(parts)


def test_a_history_keeps_the_snapshot(make_bucket: Make, read: Callable[..., Read]) -> None:
    bucket = make_bucket(history=2)
    bucket.put("kept", b"1")
    bucket.put("kept", b"2")
    bucket.put("gone", b"3")
    planned = read(bucket)
    bucket.put("kept", b"4")
    bucket.put("gone", b"5")
    bucket.put("gone", b"6")
    assert planned.found() == [("gone", b"6", 6), ("kept", b"2", 2)]


def test_the_whole_history(make_bucket: Make, read: Callable[..., Read]) -> None:
    bucket = make_bucket(history=2)
    for at in range(3):
        bucket.put("a", b"%d" % at)
        bucket.put("b", b"%d" % at)
    planned = read(bucket, history="true", minPartitions="2")
    bucket.put("a", b"later")
    bucket.put("b", b"no")
    bucket.put("b", b"later")
    assert planned.found() == [("a", b"2", 5), ("b", b"later", 9)], "b has no earlier one"
    again = read(bucket, history="true")
    assert again.found() == [
        ("a", b"2", 5),
        ("a", b"later", 7),
        ("b", b"later", 9),
        ("b", b"no", 8),
    ]
    bounded = read(bucket, history="true", endingOffsets=f'{{"{bucket.bucket}": 8}}')
    bucket.put("a", b"9")
    bucket.put("a", b"10")
    assert bounded.found() == [], "nothing later than the end"


def test_a_key_without_a_revision_is_no_row(make_bucket: Make, read: Callable[..., Read]) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    bucket.put("b", b"2")
    planned = read(bucket)
    bucket.delete("a")
    bucket.purge_deletes(older_than=0)
    assert planned.found() == [("b", b"2", 2)]


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_keys_that_move_while_they_are_read(
    jet: JetStream, make_bucket: Make, read: Callable[..., Read], mode: str
) -> None:
    bucket = make_bucket()
    put_all(jet, bucket, 3000, b"old")
    rows = read(bucket, fetchMessages="100", minPartitions="2", readMode=mode).rows()
    found = [next(rows)]
    put_all(jet, bucket, 3000, b"new", start=500)
    found += rows
    assert sorted(row["key"] for row in found) == sorted(f"k{at}" for at in range(3000))
    values = {row["key"]: row["value"] for row in found}
    assert {values[f"k{at}"] for at in range(500)} == {b"old"}
    assert values["k2999"] == b"new"


def test_reads_while_a_program_writes(
    server: NatsServer, jet: JetStream, make_bucket: Make, read: Callable[..., Read]
) -> None:
    """Each key once, none from before the snapshot, however long the read takes."""
    bucket = make_bucket()
    put_all(jet, bucket, 2000, b"0")
    done = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        try:
            with connected(server.url) as nc:
                number = 0
                while not done.is_set():
                    number += 1
                    put_all(nc.jetstream(), bucket, 2000, b"%d" % number)
        except BaseException as error:
            errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            before = {key: bucket.get(key).revision for key in ("k0", "k1000", "k1999")}
            found = {row["key"]: row["revision"] for row in Once(read(bucket, minPartitions="3"))}
            assert len(found) == 2000
            assert all(found[key] >= revision for key, revision in before.items())
    finally:
        done.set()
        writer.join(LONGEST)
    assert errors == []


class Once:
    """The rows of a read; fails if a key comes twice."""

    def __init__(self, read: Read) -> None:
        self._rows = list(read.rows())
        keys = [row["key"] for row in self._rows]
        assert len(set(keys)) == len(keys)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)


def test_another_bucket_of_the_name_is_noticed(
    jet: JetStream, make_bucket: Make, read: Callable[..., Read]
) -> None:
    bucket = make_bucket()
    bucket.put("a", b"1")
    planned = read(bucket, failOnDataLoss="false")
    jet.delete_key_value(bucket.bucket)
    jet.create_key_value(KeyValueConfig(bucket=bucket.bucket)).put("b", b"2")
    with pytest.raises(DataLossError, match="deleted and re-created; load the DataFrame again"):
        planned.found()


def test_keys_written_from_a_revision_on(make_bucket: Make, read: Callable[..., Read]) -> None:
    bucket = make_bucket(history=3)
    for at in range(4):
        bucket.put(f"k{at % 2}", b"%d" % at)
    bucket.put("k2", b"x")

    def since(revision: int, **given: str) -> list[tuple[str, bytes | None, int]]:
        start = f'{{"{bucket.bucket}": {revision}}}'
        return read(bucket, startingOffsets=start, **given).found()

    assert since(1) == [("k0", b"2", 3), ("k1", b"3", 4), ("k2", b"x", 5)]
    assert since(4) == [("k1", b"3", 4), ("k2", b"x", 5)]
    assert since(6) == []
    assert [each[2] for each in since(2, history="true")] == [3, 2, 4, 5]
    with pytest.raises(OptionError, match="is sequence 7, but the stream ends at 5"):
        since(7)


def test_an_empty_bucket(make_bucket: Make, read: Callable[..., Read]) -> None:
    bucket = make_bucket()
    assert read(bucket).found() == []
    assert read(bucket, history="true").found() == []
    bucket.put("a", b"")
    assert read(bucket).found() == [("a", b"", 1)]
    assert read(bucket, keys="b.>").found() == []


def test_buckets_that_cannot_be_read(server: NatsServer, jet: JetStream) -> None:
    with pytest.raises(OptionError, match="there is no bucket 'nowhere'"):
        Read(server, "nowhere")
    with pytest.raises(OptionError, match="'KV_x' looks like a stream, whose bucket is without"):
        Read(server, "KV_x")
    jet.create_stream(StreamConfig(name="KV_orders", subjects=["orders.kv.>"]))
    with pytest.raises(OptionError, match=r"lack \$KV.orders.>; read it by the option stream"):
        Read(server, "orders")


def test_a_mirror_has_the_keys_of_its_origin(
    jet: JetStream, make_bucket: Make, read: Callable[..., Read]
) -> None:
    origin = make_bucket()
    origin.put("a.x", b"1")
    origin.put("b.x", b"2")
    copy = make_bucket(mirror=StreamSource(name=origin.bucket))
    wait_until(lambda: copy.status().values == 2)
    assert read(copy).found() == [("a.x", b"1", 1), ("b.x", b"2", 2)]
    assert read(copy, keys="b.*").found() == [("b.x", b"2", 2)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = Deadline.after(LONGEST)
    while not condition():
        assert not deadline.expired()


def test_a_bucket_without_direct_gets(jet: JetStream, read: Callable[..., Read]) -> None:
    """As nats-py makes them."""
    name = f"tasks{next(_NUMBERS)}"
    config = StreamConfig(
        name=f"KV_{name}", subjects=[f"$KV.{name}.>"], max_msgs_per_subject=1, allow_direct=False
    )
    stream = jet.create_stream(config)
    bucket = jet.get_key_value(name)
    bucket.put("a", b"1")
    bucket.put("b", b"2")
    planned = read(bucket)
    bucket.put("a", b"3")
    assert planned.found() == [("a", b"3", 3), ("b", b"2", 2)]
    assert list(stream.consumer_names()) == []


def test_revisions_that_a_bigint_does_not_hold(jet: JetStream, read: Callable[..., Read]) -> None:
    """The keys are planned below the border between the two types, and move above it."""
    name, first = f"tasks{next(_NUMBERS)}", 2**63 - 3
    config = StreamConfig(
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        storage="memory",
        max_msgs_per_subject=1,
        allow_direct=True,
        first_seq=first,
    )
    jet.create_stream(config)
    bucket = jet.get_key_value(name)
    for key in "abcd":
        jet.publish(f"$KV.{name}.{key}", b"1")
    latest, whole = (read(bucket, uint64="decimal", history=each) for each in ("false", "true"))
    jet.publish(f"$KV.{name}.b", b"2")
    jet.publish(f"$KV.{name}.d", b"2")
    expected = [("a", first), ("b", first + 4), ("c", first + 2), ("d", first + 5)]
    for planned in (latest, whole):
        assert [(key, int(revision)) for key, _, revision in planned.found()] == expected


USERS = """
authorization {
  users: [
    { user: all, password: a }
    { user: reader, password: b, permissions: {
        publish: ["$JS.API.DIRECT.GET.>", "$JS.API.STREAM.>"], subscribe: "_INBOX.>" } }
  ]
}
"""


def test_a_user_who_may_make_no_consumer(server_factory: Callable[..., NatsServer]) -> None:
    server = server_factory(USERS)
    with connected(server.url, user="all", password="a") as nc:
        bucket = nc.jetstream().create_key_value(KeyValueConfig(bucket="b"))
        put_all(nc.jetstream(), bucket, 2000, b"1")
        user = {"nats.user": "reader", "nats.password": "b"}
        planned = Read(server, "b", **user)
        put_all(nc.jetstream(), bucket, 2000, b"2", start=1000)
        values = [value for _, value, _ in planned.found()]
        assert (values.count(b"1"), values.count(b"2")) == (1000, 1000)
        assert len(Read(server, "b", keys="k1,k2", **user).found()) == 2


def test_keys_against_the_rules_are_read(
    server: NatsServer, make_bucket: Make, read: Callable[..., Read]
) -> None:
    bucket = make_bucket()
    bucket.put("plain", b"1")
    subjects = [f"$KV.{bucket.bucket}.{key}" for key in ("a:b", "grün")]
    raw = [f"$KV.{bucket.bucket}.x.".encode() + each for each in (b"\xff.y", b"\xfe.y", b"z.y")]
    stored = [*(each.encode() for each in subjects), *raw]
    for each in stored:
        send(server, each)
    planned = read(bucket)
    for each in stored:
        send(server, each)
    found = [row[0] for row in planned.found()]
    assert found == ["a:b", "grün", "plain", "x.z.y", "x.\ufffd.y", "x.\ufffd.y"]


def send(server: NatsServer, subject: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"CONNECT {}\r\nPUB %b 1\r\nv\r\nPING\r\n" % subject)
        answer = b""
        while b"PONG" not in answer:
            answer += connection.recv(4096)


def test_the_tasks_of_a_read_have_a_range_each(
    jet: JetStream, make_bucket: Make, read: Callable[..., Read]
) -> None:
    bucket = make_bucket()
    put_all(jet, bucket, 100, b"x")
    planned = read(bucket, maxMessagesPerPartition="40")
    parts = [range_partition(each).value for each in planned.parts]
    assert [isinstance(each, KeyRange) for each in parts] == [True] * 3
    assert [(each.start, each.end) for each in parts] == [(1, 34), (34, 67), (67, 101)]
