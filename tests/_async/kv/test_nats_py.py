"""A bucket used by the SDK and by nats-py at the same time: each reads the other's values."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta

import nats
import pytest
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, NoKeysError

import js_async as js
from tests._async.buckets import listed, state, summary
from tests._async.flow import eventually
from tests.conftest import VERSION
from twinstream.models import KeyValueConfig, ObjectStoreConfig

VALUES = (b"", b"\0", b"text", "grün".encode(), bytes(range(256)) * 200)
HAS_TTL = pytest.mark.since("2.11")


@asynccontextmanager
async def both(server, name, maker, **settings):
    """Open a bucket, created by one of the clients, in both clients."""
    client = await nats.connect(server.url)
    try:
        async with js.connect(server.url) as connection:
            jet, old = connection.jetstream(), client.jetstream()
            if maker == "nats-py":
                theirs = await old.create_key_value(bucket=name, history=5, **settings)
                yield await jet.get_key_value(name), theirs
            else:
                ours = await jet.create_key_value(
                    KeyValueConfig(bucket=name, history=5, **settings)
                )
                yield ours, await old.key_value(name)
    finally:
        await client.close()


async def listing(call, count):
    """Return a listing of nats-py once it has so many entries.

    nats-py takes a listing for complete if its query for what is pending overtakes the delivery.
    """

    async def look():
        try:
            found = await call()
        except NoKeysError:
            return None
        return found if len(found) == count else None

    return await eventually(look)


MAKERS = pytest.mark.parametrize("maker", ["twinstream", "nats-py"])


@MAKERS
async def test_values_go_both_ways(server, name, maker):
    async with both(server, name, maker) as (ours, theirs):
        for number, value in enumerate(VALUES):
            key = f"a.{number}"
            revision = await theirs.put(key, value)
            entry = await ours.get(key)
            assert (entry.value, entry.revision) == (value, revision)
            revision = await ours.put(key, value + b"!")
            found = await theirs.get(key)
            assert (found.value, found.revision) == (value + b"!", revision)
            revision = await ours.update(key, value, found.revision)
            revision = await theirs.update(key, value, revision)
            assert await ours.update(key, b"end", revision) > revision
            with pytest.raises(KeyWrongLastSequenceError):
                await theirs.update(key, b"late", revision)
            with pytest.raises(js.KeyExists):
                await ours.create(key, b"late")
            with pytest.raises(KeyWrongLastSequenceError):
                await theirs.create(key, b"late")
        keys = await listed(ours.keys())
        assert sorted(await listing(theirs.keys, len(keys))) == keys
        status = await ours.status()
        assert status.values == (await theirs.status()).values


@MAKERS
async def test_markers_go_both_ways(server, name, maker):
    async with both(server, name, maker) as (ours, theirs):
        for key in ("del", "purge", "their_del", "their_purge"):
            await ours.put(key, b"1")
        await ours.delete("del")
        await ours.purge("purge")
        await theirs.delete("their_del")
        await theirs.purge("their_purge")
        for key in ("del", "purge"):
            with pytest.raises(KeyNotFoundError):
                await theirs.get(key)
        for key, operation in (("their_del", "delete"), ("their_purge", "purge")):
            with pytest.raises(js.KeyDeleted) as caught:
                await ours.get(key)
            assert caught.value.entry.operation == operation
        found = await ours.history("their_del")
        assert [each.operation.value for each in found] == ["put", "delete"]
        past = await listing(lambda: theirs.history("del"), 2)
        assert [(each.key, each.operation, each.revision) for each in past] == [
            ("del", None, 1),
            ("del", "DEL", 5),
        ]
        assert await listed(ours.keys()) == []
        # Over the markers of the other.
        for key in ("their_del", "their_purge"):
            assert await ours.create(key, b"2") > 0
        for key in ("del", "purge"):
            assert await theirs.create(key, b"2") > 0
        assert len(await listed(ours.keys())) == 4
        await listing(theirs.keys, 4)


@MAKERS
async def test_watches_see_what_the_other_does(server, name, maker):
    async with both(server, name, maker) as (ours, theirs):
        await theirs.put("a", b"1")
        watching = await theirs.watchall()
        async with ours.watch() as watch:
            assert await state(watch) == [("a", "put", b"1")]
            # nats-py puts its mark first if its query for what is pending ends after the delivery.
            initial = [await watching.updates() for _ in range(2)]
            assert [each.value for each in initial if each] == [b"1"]
            await theirs.put("b", b"2")
            await ours.delete("a")
            await theirs.purge("b")
            seen = [summary(await watch.next(timeout=20)) for _ in range(3)]
            assert seen == [("b", "put", b"2"), ("a", "delete", None), ("b", "purge", None)]
            also = [await watching.updates() for _ in range(3)]
            assert [(each.key, each.operation) for each in also] == [
                ("b", None),
                ("a", "DEL"),
                ("b", "PURGE"),
            ]
        await watching.stop()


@HAS_TTL
async def test_times_to_live_go_both_ways(server, name):
    settings = {"limit_marker_ttl": timedelta(seconds=300), "storage": "memory"}
    async with both(server, name, "twinstream", **settings) as (ours, theirs):
        await ours.purge("gone", ttl=300)
        with pytest.raises(KeyNotFoundError):
            await theirs.get("gone")
        async with js.connect(server.url) as connection:
            single = await connection.jetstream().create_key_value(
                KeyValueConfig(bucket=f"{name}_1", **settings)
            )
            client = await nats.connect(server.url)
            other = await client.jetstream().key_value(f"{name}_1")
            await other.create("k", b"1", msg_ttl=1)
            await other.create("long", b"1", msg_ttl=300)
            assert (await single.get("long")).value == b"1"

            async def expired():
                entry = await single.entry("k")
                return entry is not None and not entry.is_value

            await eventually(expired)
            with pytest.raises(js.KeyDeleted) as caught:
                await single.get("k")
            assert caught.value.entry.operation is js.KeyValueOperation.EXPIRED
            # nats-py 2.16 cannot create it now; we can.
            assert await single.create("k", b"2") > 1
            assert (await other.get("k")).value == b"2"
            await client.close()


async def test_bucket_created_by_both(server, name):
    async with js.connect(server.url) as connection:
        client = await nats.connect(server.url)
        jet, old = connection.jetstream(), client.jetstream()
        await old.create_key_value(bucket=name)
        # They differ in settings of the stream only.
        await jet.create_key_value(KeyValueConfig(bucket=name))
        await old.create_object_store(bucket=name)
        await jet.create_object_store(ObjectStoreConfig(bucket=name))
        # Their bucket allows no direct gets; ours asks the leader then.
        theirs = await jet.get_key_value(name)
        assert not theirs.cached_status.info.config.allow_direct
        await theirs.put("a", b"1")
        assert (await theirs.get("a")).value == b"1"
        assert (await theirs.get("a", stale=True)).value == b"1"
        assert (await theirs.get("a", revision=1)).value == b"1"
        assert sorted(await theirs.get_many()) == ["a"]
        assert len(await theirs.history("a")) == 1
        changed = await jet.update_key_value(KeyValueConfig(bucket=name, description="ours"))
        assert changed.cached_status.config.description == "ours"
        if VERSION is None:
            assert changed.cached_status.has_key_ttl
        await client.close()


async def test_on_a_connection_of_nats_py(server, name):
    """The whole key-value API works over a client of nats-py, too."""
    client = await nats.connect(server.url)
    jet = js.from_nats(client)
    ours = await jet.create_key_value(KeyValueConfig(bucket=name))
    theirs = await client.jetstream().key_value(name)
    async with ours.cached() as cache:
        await cache.put("a", b"1")
        assert (await theirs.get("a")).value == b"1"
        await theirs.put("b", b"2")

        async def seen():
            return cache.get("b") == b"2"

        await eventually(seen)
    await client.close()
