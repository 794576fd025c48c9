"""A bucket and an object store used by the SDK, by natsio and by nats-py at the same time.

The tests are skipped if natsio cannot be imported: it needs Python 3.13.
"""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

import js_async as js
from tests._async.buckets import listed
from tests._async.flow import eventually
from twinstream.models import KeyValueConfig, ObjectStoreConfig

pytest.importorskip("natsio", reason="natsio needs Python 3.13")

from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, LinkIsABucketError

from tests.inside import stream_in
from tests.natsio_peers import Peers
from twinstream.errors import LinkError, ObjectDeleted

VALUES = (b"", b"\0", b"text", "grün".encode(), bytes(range(256)) * 200, os.urandom(1_000_000))
SIZES = [0, 1, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 1_000_000]
NAMES = ["plain", "a/b c", "umläut", "😀", "?>?>"]
OPERATIONS = {"put": "PUT", "delete": "DEL", "purge": "PURGE"}
MAKERS = pytest.mark.parametrize("maker", ["twinstream", "natsio"])


@pytest.fixture
def peers(server):
    with Peers(server.url) as running:
        yield running


async def made(jet, peers, name, maker, **settings):
    """Return a bucket that one of the clients created, as an object of each client."""
    if maker == "natsio":
        peers.create(name, **settings)
        ours = await jet.get_key_value(name)
    else:
        ours = await jet.create_key_value(KeyValueConfig(bucket=name, **settings))
    return ours, peers.natsio(name), peers.nats_py(name)


@MAKERS
async def test_values(server, peers, name, maker):
    async with js.connect(server.url) as connection:
        ours, natsio, nats_py = await made(
            connection.jetstream(timeout=10), peers, name, maker, history=5
        )
        for number, value in enumerate(VALUES):
            key = f"a.{number}"
            first = natsio.create(key, value)
            entry = await ours.get(key)
            assert (entry.value, entry.revision) == (value, first)
            # Each goes on from the revision of another.
            second = await ours.update(key, value[:-1], first)
            found = nats_py.get(key)
            # nats-py has None for an empty value.
            assert (found.value or b"", found.revision) == (value[:-1], second)
            third = nats_py.update(key, value, second)
            also = natsio.get(key)
            assert (also.value, also.revision) == (value, third)
            fourth = natsio.update(key, value, last=third)
            assert (await ours.get(key, revision=first)).value == value
            with pytest.raises(js.RevisionMismatch) as caught:
                await ours.update(key, b"late", third)
            assert caught.value.actual == fourth
            with pytest.raises(peers.error("jetstream.WrongLastSequenceError")):
                natsio.update(key, b"late", last=second)
            with pytest.raises(KeyWrongLastSequenceError):
                nats_py.update(key, b"late", third)
            with pytest.raises(js.KeyExists):
                await ours.create(key, b"late")
            with pytest.raises(peers.error("kv.KeyExistsError")):
                natsio.create(key, b"late")
        assert await listed(ours.keys()) == sorted(natsio.keys()) == sorted(nats_py.keys())


@MAKERS
async def test_markers(server, peers, name, maker):
    async with js.connect(server.url) as connection:
        ours, natsio, nats_py = await made(
            connection.jetstream(timeout=10), peers, name, maker, history=5
        )
        for client in ("ours", "natsio", "nats_py"):
            for what in ("del", "purge"):
                await ours.put(f"{client}.{what}", b"1")
        await ours.delete("ours.del")
        await ours.purge("ours.purge")
        for client, bucket in (("natsio", natsio), ("nats_py", nats_py)):
            bucket.delete(f"{client}.del")
            bucket.purge(f"{client}.purge")
        for client in ("ours", "natsio", "nats_py"):
            for what, operation in (("del", "delete"), ("purge", "purge")):
                key = f"{client}.{what}"
                with pytest.raises(js.KeyDeleted) as caught:
                    await ours.get(key)
                assert caught.value.entry.operation == operation
                with pytest.raises(peers.error("kv.KeyDeletedError")) as theirs:
                    natsio.get(key)
                assert theirs.value.revision == caught.value.entry.revision
                with pytest.raises(KeyNotFoundError):
                    nats_py.get(key)
                mine = [
                    (OPERATIONS[each.operation.value], each.revision)
                    for each in await ours.history(key)
                ]
                assert mine == [(each.operation, each.revision) for each in natsio.history(key)]
                assert mine == [
                    (each.operation or "PUT", each.revision) for each in nats_py.history(key)
                ]
        assert await listed(ours.keys()) == natsio.keys() == []
        # Each creates over the markers of the others.
        assert await ours.create("natsio.del", b"2") < await ours.create("nats_py.purge", b"2")
        assert natsio.create("ours.del", b"2") < natsio.create("ours.purge", b"2")
        assert nats_py.create("natsio.purge", b"2") > 0
        assert await listed(ours.keys()) == sorted(natsio.keys()) == sorted(nats_py.keys())
        removed = await ours.purge_deletes(older_than=0)
        assert removed.removed == 1
        assert (await ours.status()).values == nats_py.status().values


@MAKERS
async def test_watches(server, peers, name, maker):
    async with js.connect(server.url) as connection:
        ours, natsio, nats_py = await made(
            connection.jetstream(timeout=10), peers, name, maker, history=5
        )
        await ours.put("a", b"1")
        natsio.put("b", b"1")
        nats_py.put("c", b"1")

        def write():
            natsio.delete("a")
            nats_py.purge("b")
            natsio.put("c", b"2")
            nats_py.put("d", b"")

        mine = []
        async with ours.watch() as watch:

            def see(entry):
                mine.append((entry.key, OPERATIONS[entry.operation.value], entry.revision))

            async for entry in watch.initial():
                see(entry)
            assert mine == [("a", "PUT", 1), ("b", "PUT", 2), ("c", "PUT", 3)]
            # The peers return a marker at the end of the initial values.
            mine.append(None)
            seen = peers.watched(name, write, 4)
            for _ in range(4):
                see(await watch.next(timeout=20))
        assert seen == [mine, mine]


async def test_times_to_live(server, peers, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        ours, natsio, nats_py = await made(
            jet, peers, name, "twinstream", limit_marker_ttl=timedelta(seconds=300)
        )
        await ours.create("ours", b"1", ttl=1)
        natsio.create("natsio", b"1", ttl=1)
        nats_py.create("nats_py", b"1", msg_ttl=1)
        await ours.put("purged", b"1")
        await ours.purge("purged", ttl=300)
        for key in ("ours", "natsio", "nats_py"):

            async def expired(key=key):
                entry = await ours.entry(key)
                return entry is not None and not entry.is_value

            await eventually(expired)
            assert (await ours.entry(key)).operation is js.KeyValueOperation.EXPIRED
            with pytest.raises(peers.error("kv.KeyDeletedError")):
                natsio.get(key)
            # nats-py 2.16 takes the marker of the server for a value.
            assert nats_py.get(key).value is None
        for bucket, error in ((natsio, peers.error("kv.KeyDeletedError")), (nats_py, Exception)):
            with pytest.raises(error):
                bucket.get("purged")
        assert await listed(ours.keys()) == natsio.keys() == []
        # natsio and this SDK create over markers of the server; nats-py 2.16 does not.
        assert natsio.create("ours", b"2") > 0
        assert await ours.create("natsio", b"2") > 0
        with pytest.raises(KeyWrongLastSequenceError):
            nats_py.create("nats_py", b"2")


async def test_a_bucket_that_each_creates(server, peers, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        await jet.create_key_value(KeyValueConfig(bucket=name))
        # An equal configuration, both ways.
        peers.create(name)
        peers.create(f"{name}_2")
        await jet.create_key_value(KeyValueConfig(bucket=f"{name}_2"))
        with pytest.raises(js.BucketExists) as caught:
            await jet.create_key_value(KeyValueConfig(bucket=name, history=3))
        assert [each.field for each in caught.value.differences] == ["max_msgs_per_subject"]


async def test_contents_of_objects(server, peers, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        peers.create_store(name)
        ours = await jet.get_object_store(name)
        natsio, nats_py = peers.natsio_store(name), peers.nats_py_store(name)
        contents = {}
        for number, size in enumerate(SIZES):
            for client in ("ours", "natsio", "nats_py"):
                contents[f"{NAMES[number % len(NAMES)]} {size} {client}"] = os.urandom(size)
        headers = {"One": ["1"], "Two": ["2", "3"]}
        for key, content in contents.items():
            words = {"description": "words", "headers": headers}
            theirs, other = peers.meta(key, **words)
            if key.endswith("ours"):
                await ours.put(js.ObjectMeta(key, chunk_size=100_000, **words), content)
            elif key.endswith("natsio"):
                natsio.put(theirs, content)
            else:
                nats_py.put(key, content, other)
        for key, content in contents.items():
            assert await ours.get_bytes(key) == natsio.get_bytes(key) == content
            assert bytes(nats_py.get(key).data or b"") == content
            info, theirs, other = await ours.info(key), natsio.info(key), nats_py.get_info(key)
            assert info.digest == theirs.digest == other.digest
            assert info.size == theirs.size == other.size == len(content)
            assert info.headers == theirs.headers == headers
            assert info.description == theirs.description == other.description == "words"
        names = sorted([info.name async for info in ours.list()])
        assert names == sorted(contents) == sorted(info.name for info in natsio.list())
        assert names == sorted(info.name for info in nats_py.list())


async def test_objects_that_others_replace_and_delete(server, peers, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        ours = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        natsio, nats_py = peers.natsio_store(name), peers.nats_py_store(name)
        for key in ("a", "b", "c"):
            await ours.put(key, b"x" * 300_000)
        natsio.put("a", b"natsio")
        nats_py.put("b", b"nats-py")
        assert await ours.get_bytes("a") == b"natsio"
        assert natsio.get_bytes("b") == await ours.get_bytes("b") == b"nats-py"
        # One nuid for each object: the chunks of replaced objects are removed, by each client.
        subjects = stream_in(ours).subjects(f"$O.{name}.C.>")
        assert len([subject async for subject, _ in subjects]) == 3
        natsio.delete("a")
        await ours.delete("b")
        for key in ("a", "b"):
            with pytest.raises(ObjectDeleted):
                await ours.info(key)
            with pytest.raises(peers.error("objectstore.ObjectDeletedError")):
                natsio.info(key)
        await ours.put("a", b"ours")
        natsio.put("b", b"natsio")
        assert natsio.get_bytes("a") == b"ours"
        assert await ours.get_bytes("b") == b"natsio"
        # natsio 1.0 cannot read what nats-py writes of a deleted object: an empty time.
        nats_py.delete("c")
        with pytest.raises(ValueError, match="isoformat"):
            natsio.info("c")
        with pytest.raises(ObjectDeleted):
            await ours.info("c")
        changed = await ours.update_meta("b", description="ours")
        assert natsio.info("b").description == changed.description == "ours"
        natsio.update_meta("a", peers.meta("renamed")[0])
        assert await ours.get_bytes("renamed") == b"ours"
        with pytest.raises(js.ObjectNotFound):
            await ours.info("a")


async def test_links(server, peers, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        ours = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await jet.create_object_store(ObjectStoreConfig(bucket=f"{name}_2", storage="memory"))
        natsio, nats_py = peers.natsio_store(name), peers.nats_py_store(name)
        other = peers.natsio_store(f"{name}_2")
        target = await ours.put("target", b"content")
        there = other.put("there", b"elsewhere")
        await ours.add_link("our link", target)
        natsio.add_link("their link", there)
        await ours.add_bucket_link("our bucket", f"{name}_2")
        natsio.add_bucket_link("their bucket", f"{name}_2")
        assert natsio.get_bytes("our link") == await ours.get_bytes("our link") == b"content"
        assert await ours.get_bytes("their link") == b"elsewhere"
        assert bytes(nats_py.get("their link").data) == b"elsewhere"
        for key in ("our bucket", "their bucket"):
            with pytest.raises(LinkError):
                await ours.get_bytes(key)
            with pytest.raises(peers.error("objectstore.LinkError")):
                natsio.get_bytes(key)
            with pytest.raises(LinkIsABucketError):
                nats_py.get(key)


async def test_a_watch_of_objects(server, peers, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        ours = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        natsio, nats_py = peers.natsio_store(name), peers.nats_py_store(name)
        natsio.put("a", b"1")
        nats_py.put("b", b"2")
        async with ours.watch() as watch:
            assert [each.name async for each in watch.initial()] == ["a", "b"]
            nats_py.delete("a")
            natsio.put("b", b"3")
            natsio.delete("b")
            seen = [await watch.next(timeout=20) for _ in range(3)]
        assert [(each.name, bool(each.deleted)) for each in seen] == [
            ("a", True),
            ("b", False),
            ("b", True),
        ]
