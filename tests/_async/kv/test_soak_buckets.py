"""Buckets and object stores in a cluster whose nodes are killed, stopped and cut off.

Short by default, long with `make soak`.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

import js_async as js
from js_async.runtime.concurrency import aside
from tests._async.flow import eventually, pause, together
from tests._async.trouble import PATIENT, Progress, created, healthy, is_passing, lead, trouble
from tests.conftest import VERSION
from tests.inside import stream_in
from tests.soak import rounds, state
from twinstream.errors import ObjectPutFailed
from twinstream.models import ObjectStoreConfig, StreamConfig
from twinstream.testing import NatsCluster


@pytest.fixture(scope="module")
def own_cluster():
    """Three servers that these tests kill and cut off."""
    with NatsCluster(version=VERSION, separable=True) as running:
        yield running


class Writes:
    """The values that were written under one kind of key. Each attempt writes a unique word."""

    def __init__(self):
        self.acknowledged = {}
        self.unknown = set()


async def settled(call, progress):
    """Return the result of a call, or None if its outcome is unknown."""
    try:
        result = await call()
    except js.TwinstreamError as error:
        if not is_passing(error):
            raise
        return None
    progress.done += 1
    return result


async def put_all(bucket, writes, progress):
    """Put values until the failures end."""
    number = 0
    while not progress.is_over:
        number += 1
        word = f"put {number}"
        revision = await settled(
            lambda word=word, number=number: bucket.put(f"p.{number % 7}", word.encode()), progress
        )
        if revision is None:
            writes.unknown.add(word)
        else:
            writes.acknowledged[word] = revision


async def count_up(bucket, name, writes, progress):
    """Count by compare and set until the failures end; another client does the same."""
    number = 0
    while not progress.is_over:
        entry = await settled(lambda: bucket.entry("count"), progress)
        if entry is None:
            continue
        number += 1
        word = f"{int(entry.value.split()[0]) + 1} {name} {number}"
        try:
            revision = await settled(
                lambda word=word, entry=entry: bucket.update(
                    "count", word.encode(), entry.revision
                ),
                progress,
            )
        except js.RevisionMismatch:
            continue
        if revision is None:
            writes.unknown.add(word)
        else:
            writes.acknowledged[word] = revision


async def watch_all(watch, seen):
    """Record the entries that a watch delivers, up to the key `end`."""
    async for entry in watch:
        seen.append((entry.revision, entry.key, (entry.value or b"").decode()))
        if entry.key == "end":
            return


def check(seen, key, writes):
    """Check that each acknowledged write exists once, at its revision, and none exists twice."""
    found = {}
    for revision, each, word in seen:
        if each.partition(".")[0] == key:
            assert word not in found, f"{word!r} is stored twice"
            found[word] = revision
    assert {word: found.get(word) for word in writes.acknowledged} == writes.acknowledged
    assert found.keys() <= writes.acknowledged.keys() | writes.unknown
    return found


async def test_a_bucket_in_a_cluster_in_trouble(own_cluster, name):
    troubles = rounds(7, 105)
    url = own_cluster.url
    async with (
        js.connect(url, reconnect=PATIENT) as first,
        js.connect(url, reconnect=PATIENT) as second,
        js.connect(url, reconnect=PATIENT) as third,
    ):
        jet = first.jetstream(timeout=5)
        # A bucket that forgets no revision, so that a watch has to deliver them all.
        config = StreamConfig(
            name=f"KV_{name}",
            subjects=[f"$KV.{name}.>"],
            num_replicas=3,
            allow_direct=True,
            allow_rollup_hdrs=True,
        )
        stream = await created(lambda: jet.create_stream(config, timeout=60))
        buckets = [
            await each.jetstream(timeout=5).get_key_value(name, timeout=60)
            for each in (first, second, third)
        ]
        await buckets[0].create("count", b"0 start", timeout=60)
        puts, counts, progress = Writes(), Writes(), Progress()
        counts.acknowledged["0 start"] = 1
        seen = []

        async def end():
            await trouble(own_cluster, stream, progress, troubles)

            async def is_written():
                return len(written) == 3

            async def ended():
                return await settled(lambda: buckets[0].put("end", b""), progress)

            # Not before the last writes have their responses.
            await eventually(is_written, patience=60)
            await eventually(ended, patience=60)

        written = []

        async def write(work):
            await work()
            written.append(work)

        async with buckets[2].watch(history=True) as watch:
            await together(
                end,
                lambda: write(lambda: put_all(buckets[0], puts, progress)),
                lambda: write(lambda: count_up(buckets[1], "b", counts, progress)),
                lambda: write(lambda: count_up(buckets[2], "c", counts, progress)),
                lambda: watch_all(watch, seen),
            )
        state(
            f"bucket in trouble: {troubles} troubles, {len(seen)} revisions,"
            f" {len(puts.acknowledged)} puts and {len(counts.acknowledged)} counts acknowledged,"
            f" {len(puts.unknown) + len(counts.unknown)} unknown"
        )
        # Every revision, in order and once.
        assert [revision for revision, _, _ in seen] == list(range(1, len(seen) + 1))
        check(seen, "p", puts)
        check(seen, "count", counts)
        numbers = [int(word.split()[0]) for _, key, word in seen if key == "count"]
        assert numbers == list(range(len(numbers)))


async def chunks_of(store, key, content):
    """Return which chunks of a content the leader has, in the order of the stream."""
    info = await store.info(key)
    size = 128 * 1024
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    stream, found = stream_in(store), []
    async with stream.read(subjects=f"$O.{store.bucket}.C.{info.nuid}") as read:
        async for message in read:
            index = chunks.index(message.data) if message.data in chunks else "another"
            found.append((message.seq, index, message.headers.get("Nats-Msg-Id")))
    again = []
    for _ in range(10):
        try:
            again.append(await store.get_bytes(key) == content)
        except js.DigestMismatch:
            again.append("mismatch")
    return f"{info}: {len(chunks)} chunks of {len(content)} bytes; {found}; {again}"


@pytest.mark.parametrize(("count", "times"), [(4, 50), (80, 5)], ids=["a page", "two pages"])
async def test_an_object_is_read_from_a_replica_that_lags(
    own_cluster, name, tmp_path, count, times
):
    """An upload removed chunks and sent them again. A replica that was cut off still has both."""
    size, nuid = 128 * 1024, "REPEATEDUPLOADSNUID"
    content = random.Random(name).randbytes(count * size - 100)
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    near, far = (server.url for server in own_cluster.servers[1:])
    async with (
        js.connect(near, reconnect=PATIENT) as first,
        js.connect(far, reconnect=PATIENT) as second,
    ):
        jet = first.jetstream(timeout=60)
        config = ObjectStoreConfig(bucket=name, num_replicas=3)
        store = await created(lambda: jet.create_object_store(config, timeout=60))
        stream = stream_in(store)
        await lead(first, stream, own_cluster.servers[0])
        lagging = await second.jetstream(timeout=60).get_object_store(name)
        described = await store.put("a", content)
        metadata = await stream.get_message(described.revision)

        async def send(chunk, number):
            subject, msg_id = f"$O.{name}.C.{nuid}", f"{nuid}.{number}"
            return await jet.publish(subject, chunk, msg_id=msg_id)

        # The server refuses the first chunk at first, so it is stored after the others.
        early = [await send(chunks[at], at + 1) for at in range(1, count)]
        await send(chunks[0], 1)
        await healthy(stream)
        own_cluster.isolate()
        for each in early:
            await stream.delete_message(each.seq)
        for at in range(1, count):
            await send(chunks[at], at + count)
        data = metadata.data.replace(described.nuid.encode(), nuid.encode())
        await jet.publish(metadata.subject, data, headers={"Nats-Rollup": "sub"})
        # The replica needs a while for these.
        for _ in range(300):
            await jet.publish(f"$O.{name}.C.other", bytes(100_000))

        async def read_once():
            try:
                assert await lagging.get_bytes("a", idle_timeout=60, timeout=60) == content
                async with await lagging.get("a", start=size + 5, idle_timeout=60) as part:
                    assert await part.read() == content[size + 5 :]
                await lagging.get_file("a", tmp_path / "a")
            except js.TwinstreamError as error:
                # The replica may still be cut off.
                if not is_passing(error):
                    raise
                return False
            return (tmp_path / "a").read_bytes() == content

        async def read():
            for _ in range(times):
                assert await eventually(read_once, patience=90)

        await together(lambda: aside(own_cluster.rejoin), read)


async def test_objects_in_a_cluster_in_trouble(own_cluster, name):
    troubles = rounds(4, 63)
    chance = random.Random(name)
    url = own_cluster.url
    async with (
        js.connect(url, reconnect=PATIENT) as first,
        js.connect(url, reconnect=PATIENT) as second,
    ):
        config = ObjectStoreConfig(bucket=name, num_replicas=3)
        jet = first.jetstream(timeout=5)
        store = await created(lambda: jet.create_object_store(config, timeout=60))
        other = await second.jetstream(timeout=5).get_object_store(name, timeout=60)
        progress = Progress()
        # All contents that an object may have, and the one that it must have.
        known, last, failed, read = {}, {}, [], []

        async def write():
            number = 0
            while not progress.is_over:
                number += 1
                key = f"object {number % 3}"
                content = chance.randbytes(chance.choice([0, 1000, 400_000, 1_500_000]))
                known.setdefault(key, set()).add(content)
                try:
                    await store.put(key, content)
                except js.TwinstreamError as error:
                    if not isinstance(error, ObjectPutFailed) and not is_passing(error):
                        raise
                    # It may be stored if that is not known, but nothing else is.
                    failed.append(error)
                    last.pop(key, None)
                    continue
                progress.done += 1
                last[key] = content

        async def reading():
            while not progress.is_over:
                key = f"object {chance.randrange(3)}"
                try:
                    content = await other.get_bytes(key)
                except js.TwinstreamError as error:
                    gone = isinstance(error, (js.ObjectNotFound, js.ObjectChanged))
                    if not gone and not is_passing(error):
                        raise
                    await pause(0.01)
                    continue
                assert content in known[key]
                read.append(key)
                progress.done += 1

        await together(
            lambda: trouble(own_cluster, stream_in(store), progress, troubles), write, reading
        )
        state(
            f"objects in trouble: {troubles} troubles, {sum(map(len, known.values()))} puts,"
            f" {len(failed)} failed, {len(read)} reads"
        )
        assert read
        # The cluster may still be busy with what happened to it.
        calm = await second.jetstream(timeout=90).get_object_store(name)
        for key, content in last.items():
            try:
                assert await calm.get_bytes(key, idle_timeout=60) == content
            except js.DigestMismatch as error:
                error.add_note(await chunks_of(store, key, content))
                raise
        for key in known:
            with suppress(js.ObjectNotFound):
                assert await calm.get_bytes(key, idle_timeout=60) in known[key]
