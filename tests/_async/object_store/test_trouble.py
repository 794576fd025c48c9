"""Object stores during failures: disordered chunks, lost responses, kills; bounded memory."""

from __future__ import annotations

import os
import tracemalloc

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests._async.leaders import step_down
from tests._async.lossy import Lossy
from tests.inside import session_of, stream_in
from twinstream.errors import ObjectPutFailed
from twinstream.models import ObjectStoreConfig
from twinstream.testing import Proxy

CHUNK = 1000


class Disordered(Lossy):
    """A connection that disturbs chunks according to `plan`, by their number from 1.

    `late` sends a chunk after the next two, `drop` does not send it, and `deaf` loses the server's
    response.
    """

    def __init__(self, transport, plan):
        super().__init__(transport)
        self.plan = dict(plan)
        self.seen = 0
        self.held = []

    def write(self, subject, reply, headers, data):
        if b".C." not in subject:
            return self._transport.write(subject, reply, headers, data)
        self.seen += 1
        action = self.plan.pop(self.seen, None)
        if action == "drop":
            return True
        if action == "deaf":
            reply = b"nowhere"
        if action == "late":
            self.held.append((self.seen + 2, (subject, reply, headers, data)))
            return True
        sent = self._transport.write(subject, reply, headers, data)
        while self.held and self.held[0][0] <= self.seen:
            assert self._transport.write(*self.held.pop(0)[1])
        return sent


async def stored(jet, name, **options):
    config = ObjectStoreConfig(bucket=name, storage="memory", **options)
    return await jet.create_object_store(config)


async def contents(store):
    """Return the number of contents in the store, complete or not."""
    found = stream_in(store).subjects(f"$O.{store.bucket}.C.>")
    return len([subject async for subject, _ in found])


@pytest.mark.parametrize(
    "plan",
    [
        {3: "late"},
        {1: "late", 7: "late"},
        {3: "late", 8: "late", 12: "late", 20: "late"},
        {3: "deaf"},
        {18: "deaf", 19: "deaf", 20: "deaf"},
        {20: "drop"},
        {2: "drop", 3: "deaf", 9: "late"},
    ],
    ids=str,
)
async def test_chunks_are_in_order_despite_failures(server, name, plan):
    data = os.urandom(20 * CHUNK - 7)
    async with js.connect(server.url) as connection:
        await stored(connection.jetstream(), name)
        link = Disordered(session_of(connection), plan)
        store = link.jetstream().bind_object_store(name)
        meta = js.ObjectMeta("a", chunk_size=CHUNK)
        info = await store.put(meta, blocks(data), idle_timeout=3)
        assert link.plan == {}
        assert info.chunks == 20
        assert await store.get_bytes("a") == data
        assert [count async for _, count in stream_in(store).subjects(f"$O.{name}.C.>")] == [20]


def blocks(data):
    """Iterate over bytes in pieces, as a source that cannot be read twice."""
    return (data[at : at + 700] for at in range(0, len(data), 700))


async def test_description_with_lost_response_is_stored_once(server, name):
    async with js.connect(server.url) as connection:
        store = await stored(connection.jetstream(), name)
        await store.put("a", b"old")
        with Proxy(server.url) as proxy:
            async with js.connect(proxy.url) as distant:
                far = distant.jetstream(timeout=20).bind_object_store(name)
                await far.info("a")

                proxy.delay = 1.0

                async def put():
                    return await far.put("a", b"x" * 5000)

                async def answer_again():
                    async def described():
                        return (await store.info("a")).size == 5000

                    await eventually(described)
                    # While the answer is in the proxy.
                    proxy.cut()
                    proxy.delay = 0.0

                info, _ = await together(put, answer_again)
        assert (await store.info("a")).revision == info.revision
        assert await store.get_bytes("a") == b"x" * 5000
        assert await contents(store) == 1


async def test_a_server_that_stops_for_good_leaves_the_old_object(server_factory, name):
    with server_factory() as server:
        async with js.connect(server.url, reconnect=js.ReconnectPolicy(wait=0.05)) as connection:
            jet = connection.jetstream(timeout=30)
            store = await jet.create_object_store(ObjectStoreConfig(bucket=name))
            await store.put("a", b"old")
            store = connection.jetstream(timeout=1).bind_object_store(name)

            def kill(report):
                if report.transferred > 1_000_000 and server.running:
                    server.kill()

            # On a busy machine, it may fail before that.
            while server.running:
                with pytest.raises(ObjectPutFailed) as caught:
                    await store.put(
                        "a", b"x" * 10_000_000, window=500_000, idle_timeout=1, on_progress=kill
                    )
            assert not caught.value.cleaned
            assert "sweep" in str(caught.value.__cause__.__notes__)
            server.start()
            jet = connection.jetstream(timeout=20)
            store = jet.bind_object_store(name)
            assert await store.get_bytes("a") == b"old"
            assert await contents(store) == 2
            assert (await store.sweep(older_than=0)).uploads == 1
            assert await contents(store) == 1


async def test_a_server_that_is_killed_while_objects_are_stored_and_read(server_factory, name):
    data = [os.urandom(3_000_000) for _ in range(3)]
    with server_factory() as server:
        reconnect = js.ReconnectPolicy(wait=0.02, max_wait=0.1)
        async with js.connect(server.url, reconnect=reconnect) as connection:
            jet = connection.jetstream(timeout=30)
            store = await jet.create_object_store(ObjectStoreConfig(bucket=name))
            await store.put("a", data[0])
            kills = iter(range(6))

            def kill(report):
                if report.transferred > 1_500_000 and next(kills, None) is not None:
                    server.kill()
                    server.start()

            for number in range(4):
                made = await store.put("a", data[number % 3], window=300_000, on_progress=kill)
                async with store.get("a", on_progress=kill) as reader:
                    assert await reader.read_all() == data[number % 3]
                    assert reader.info.nuid == made.nuid
            assert next(kills, None) is None
            assert await contents(store) == 1


async def test_many_objects_over_a_connection_that_breaks(server, name):
    data = [os.urandom(1_000_000) for _ in range(8)]
    with Proxy(server.url) as proxy:
        reconnect = js.ReconnectPolicy(wait=0.02, max_wait=0.1)
        async with js.connect(proxy.url, reconnect=reconnect) as connection:
            jet = connection.jetstream(timeout=60)
            store = await stored(jet, name)
            reports = iter(range(1000))

            def cut(_):
                if next(reports) % 12 == 11:
                    proxy.cut()

            def writer(number):
                async def work():
                    content = data[number]
                    await store.put(f"o{number}", content, window=300_000, on_progress=cut)
                    async with store.get(f"o{number}", on_progress=cut) as reader:
                        assert await reader.read_all() == content

                return work

            await together(*(writer(number) for number in range(8)))
            assert proxy.accepted > 3
            assert await contents(store) == 8


async def test_watch_continues_after_the_server_was_killed(server_factory, name):
    with server_factory() as server:
        async with js.connect(server.url, reconnect=js.ReconnectPolicy(wait=0.02)) as connection:
            jet = connection.jetstream(timeout=20)
            store = await jet.create_object_store(ObjectStoreConfig(bucket=name))
            await store.put("a", b"1")
            async with store.watch() as watch:
                assert (await watch.next(timeout=20)).name == "a"
                server.kill()
                server.start()
                await store.put("b", b"2")
                assert (await watch.next(timeout=20)).name == "b"
                server.kill()
                server.start()
                await store.delete("a")
                assert (await watch.next(timeout=20)).deleted


@pytest.mark.parametrize("what", ["put", "get"])
async def test_leaders_that_change_while_an_object_is_stored_or_read(cluster, name, what):
    data = os.urandom(4_000_000)
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=30)
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, num_replicas=3))
        await store.put("a", b"old")
        marks = [500_000, 1_500_000, 2_500_000]

        async def paced():
            """Iterate over the content, and change the leader after a part of it."""
            for at in range(0, len(data), 100_000):
                if marks and at >= marks[0]:
                    marks.pop(0)
                    await step_down(connection, f"STREAM.LEADER.STEPDOWN.OBJ_{name}")
                yield data[at : at + 100_000]

        if what == "put":
            await store.put("a", paced(), window=400_000)
        else:
            await store.put("a", data)
            read = 0
            async with store.get("a") as reader:
                while piece := await reader.read(100_000):
                    assert piece == data[read : read + len(piece)]
                    read += len(piece)
                    if marks and read >= marks[0]:
                        marks.pop(0)
                        await step_down(connection, f"STREAM.LEADER.STEPDOWN.OBJ_{name}")
            assert read == len(data)
        assert marks == []
        assert await store.get_bytes("a") == data
        assert await contents(store) == 1


async def test_store_that_accepts_small_pages_gets_everything(cluster, name):
    # Many clients at once: the stream turns away what it cannot buffer.
    data = os.urandom(2_000_000)
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=60)
        config = ObjectStoreConfig(bucket=name, num_replicas=3, storage="memory")
        store = await jet.create_object_store(config)

        def writer(number):
            async def work():
                await store.put(
                    f"o{number}", (data[at : at + 9999] for at in range(0, len(data), 9999))
                )

            return work

        await together(*(writer(number) for number in range(8)))
        for number in range(8):
            assert await store.get_bytes(f"o{number}") == data
        assert await contents(store) == 8


async def test_memory_contains_a_window_and_not_the_whole_object(server, name, tmp_path):
    size, piece = 96 << 20, os.urandom(1 << 20)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=30)
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name))
        await store.put("warm", piece)
        await store.get_file("warm", tmp_path / "warm")
        tracemalloc.start()
        try:
            await store.put("a", (piece for _ in range(size >> 20)), window=4 << 20)
            assert tracemalloc.get_traced_memory()[1] < 24 << 20
            tracemalloc.reset_peak()
            await store.get_file("a", tmp_path / "out")
            assert tracemalloc.get_traced_memory()[1] < 48 << 20
        finally:
            tracemalloc.stop()
        assert (tmp_path / "out").stat().st_size == size
        await jet.delete_object_store(name)
