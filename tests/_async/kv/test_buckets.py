"""Buckets: their settings, creating, changing, deleting and listing them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

import js_async as js
from tests._async.buckets import bucket, listed
from tests._async.flow import together
from twinstream.errors import InvalidConfig, NotABucket, ValueTooLarge
from twinstream.models import (
    Compression,
    KeyValueConfig,
    Placement,
    Republish,
    StreamConfig,
    StreamSource,
    evolve,
)


async def test_a_bucket_is_the_stream_that_peers_make(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=3, description="prices", metadata={"a": "b"})
        config = (await jet.get_stream(f"KV_{name}")).cached_info.config
        assert config.subjects == [f"$KV.{name}.>"]
        assert config.max_msgs_per_subject == 3
        assert config.discard == "new"
        assert config.allow_rollup_hdrs
        assert config.deny_delete
        assert config.allow_direct
        assert not config.deny_purge
        status = made.cached_status
        assert (status.bucket, status.values, status.last_revision) == (name, 0, 0)
        assert status.config.metadata == {"a": "b"}
        assert status.config.description == "prices"
        assert repr(made) == f"<KeyValue {name}>"


async def test_creating_again_is_fine_if_nothing_differs(opened, name):
    async with opened() as jet:
        await bucket(jet, name, history=2)
        await bucket(jet, name, history=2)
        with pytest.raises(js.BucketExists, match="update_key_value changes them") as caught:
            await bucket(jet, name, history=3)
        (found,) = caught.value.differences
        assert (found.field, found.wanted, found.actual) == ("history", 3, 2)
        assert isinstance(caught.value, js.StreamExists)


async def test_creating_again_compares_the_settings_of_the_bucket_only(opened, name):
    async with opened() as jet:
        await bucket(jet, name, ttl=timedelta(seconds=30))
        hour = timedelta(hours=1)
        # The duplicate window stays at 30 s, which is not a setting of a bucket.
        await jet.update_key_value(KeyValueConfig(bucket=name, ttl=hour, storage="memory"))
        assert (await bucket(jet, name, ttl=hour)).cached_status.config.ttl == hour
        with pytest.raises(js.BucketExists, match="ttl: wanted 7200 s, is 3600 s; update_key"):
            await bucket(jet, name, ttl=2 * hour)
        with pytest.raises(js.BucketExists, match="the storage of a bucket is fixed"):
            await bucket(jet, name, ttl=hour, storage="file")
        await jet.create_stream(StreamConfig(name=f"KV_{name}_no", subjects=[f"{name}.no"]))
        with pytest.raises(NotABucket):
            await bucket(jet, f"{name}_no")


async def test_an_update_replaces_the_settings_of_the_bucket_only(opened, name):
    async with opened() as jet:
        hour = timedelta(hours=1)
        await bucket(jet, name, history=2, description="old", ttl=hour, metadata={"a": "b"})
        stream = await jet.get_stream(f"KV_{name}")
        await stream.change(lambda config: evolve(config, max_msgs=777, max_bytes=1 << 20))
        plain = KeyValueConfig(bucket=name, storage="memory")
        kept = await jet.update_key_value(evolve(plain, description="new"))
        status = kept.cached_status
        assert (status.config.description, status.config.history) == ("new", 1)
        assert (status.config.ttl, status.config.metadata or None) == (None, None)
        assert (status.config.max_bytes, status.info.config.max_msgs) == (-1, 777)
        # Shorter than the duplicate window, which has to follow.
        shorter = await jet.update_key_value(evolve(plain, history=2, ttl=timedelta(seconds=5)))
        assert shorter.cached_status.info.config.duplicate_window == timedelta(seconds=5)
        with pytest.raises(InvalidConfig, match="storage type"):
            await jet.update_key_value(KeyValueConfig(bucket=name))
        changed = await kept.change(lambda config: evolve(config, ttl=None, description=None))
        assert not changed.config.ttl
        assert not changed.config.description
        assert (await kept.status()).config.history == 2
        with pytest.raises(js.BadArgument, match="edit must return"):
            await kept.change(lambda config: None)
        with pytest.raises(js.BadArgument, match="cannot be renamed"):
            await kept.change(lambda config: evolve(config, bucket="other"))


async def test_a_bucket_is_created_or_updated(opened, name):
    async with opened() as jet:
        config = KeyValueConfig(bucket=name, history=2, storage="memory")
        first = await jet.create_or_update_key_value(config)
        await first.put("a", b"1")
        second = await jet.create_or_update_key_value(evolve(config, history=5))
        assert second.cached_status.config.history == 5
        assert (await second.get("a")).value == b"1"


@pytest.mark.since("2.11")
async def test_per_key_ttl_is_allowed_by_an_update(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        with pytest.raises(js.Unsupported, match="set its limit_marker_ttl"):
            await made.put("a", b"1", ttl=5)
        await jet.update_key_value(
            KeyValueConfig(bucket=name, storage="memory", limit_marker_ttl=timedelta(seconds=9))
        )
        # The old handle finds out by itself.
        assert await made.put("a", b"1", ttl=5) == 1
        assert made.cached_status.has_key_ttl
        off = await jet.update_key_value(KeyValueConfig(bucket=name, storage="memory"))
        assert not off.cached_status.config.limit_marker_ttl
        assert off.cached_status.has_key_ttl


async def test_what_is_missing_and_what_is_no_bucket(opened, name):
    async with opened() as jet:
        with pytest.raises(js.BucketNotFound, match="create it with create_key_value"):
            await jet.get_key_value(name)
        with pytest.raises(js.BucketNotFound):
            await jet.update_key_value(KeyValueConfig(bucket=name, description="x"))
        with pytest.raises(js.BucketNotFound):
            await jet.delete_key_value(name)
        bound = jet.bind_key_value(name)
        for call in (
            lambda: bound.get("a"),
            lambda: bound.put("a", b""),
            lambda: bound.create("a", b""),
            lambda: bound.update("a", b"", 1),
            lambda: bound.delete("a"),
            lambda: bound.purge("a"),
            lambda: bound.history("a"),
            lambda: bound.get_many(),
            lambda: bound.status(),
            lambda: bound.purge_deletes(),
            lambda: bound.watch(),
            lambda: listed(bound.keys()),
        ):
            with pytest.raises(js.BucketNotFound):
                await call()
        await jet.create_stream(StreamConfig(name=f"KV_{name}", subjects=[f"{name}.x"]))
        with pytest.raises(NotABucket, match=rf"its subjects lack \$KV\.{name}\.>"):
            await jet.get_key_value(name)


async def test_a_bucket_that_was_deleted_behind_the_handle(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        await jet.delete_key_value(name)

        async def fails(call):
            with pytest.raises(js.BucketNotFound):
                await call()

        # The last three try again until their timeout.
        calls = (
            lambda: made.get("a"),
            lambda: made.put("a", b""),
            lambda: made.create("a", b"", timeout=2),
            lambda: made.update("a", b"", 1, timeout=2),
            lambda: made.delete("a", revision=1, timeout=2),
        )
        await together(*(partial(fails, call) for call in calls))


async def test_buckets_are_listed_and_deleted(opened, name):
    async with opened() as jet:
        names = [f"{name}_{number}" for number in range(3)]
        for each in names:
            await bucket(jet, each)
        await jet.create_stream(StreamConfig(name=f"{name}_stream"))
        found = [each.bucket async for each in jet.key_values() if each.bucket.startswith(name)]
        assert sorted(found) == names
        found = [each async for each in jet.key_value_names() if each.startswith(name)]
        assert sorted(found) == names
        await jet.delete_key_value(names[0])
        found = [each async for each in jet.key_value_names() if each.startswith(name)]
        assert sorted(found) == names[1:]


async def test_a_bound_bucket_asks_when_it_has_to(opened, name):
    async with opened() as jet:
        await bucket(jet, name)
        bound = jet.bind_key_value(name)
        assert bound.cached_status is None
        assert await bound.put("a", b"1") == 1
        assert (await bound.get("a")).value == b"1"
        assert await bound.create("b", b"1") == 2
        assert bound.cached_status.bucket == name


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"history": 65}, "history must be from 1 to 64"),
        ({"history": 0}, "history must be from 1 to 64"),
        ({"ttl": timedelta(milliseconds=99)}, "at least 100 ms"),
        ({"limit_marker_ttl": timedelta(milliseconds=999)}, "at least 1 s"),
        ({"bucket": "a.b"}, "bucket name 'a.b'"),
        ({"bucket": "a\n"}, "bucket name"),
        ({"mirror": StreamSource()}, "mirror needs the name"),
        ({"mirror": StreamSource(name="o"), "sources": [StreamSource(name="p")]}, "not both"),
    ],
)
async def test_settings_that_no_bucket_has(opened, name, settings, words):
    async with opened() as jet:
        with pytest.raises(js.BadArgument, match=words):
            await jet.create_key_value(KeyValueConfig(**{"bucket": name, **settings}))
        with pytest.raises(js.BadArgument, match="a KeyValueConfig is expected"):
            await jet.create_key_value(StreamConfig(name=name))


async def test_all_other_settings_reach_the_stream(opened, name):
    async with opened() as jet:
        config = KeyValueConfig(
            bucket=name,
            max_bytes=1_000_000,
            max_value_size=1000,
            compression=True,
            republish=Republish(src=">", dest=f"{name}.copy.>"),
            placement=Placement(tags=[]),
            storage="file",
        )
        made = await jet.create_key_value(config)
        stream = made.cached_status.info.config
        assert (stream.max_bytes, stream.max_msg_size) == (1_000_000, 1000)
        assert stream.compression is Compression.S2
        assert stream.republish.dest == f"{name}.copy.>"
        status = await made.status()
        assert status.is_compressed
        assert status.config.republish.src == ">"
        with pytest.raises(ValueTooLarge, match="max_value_size"):
            await made.put("a", bytes(1001))
        # Headers count, too.
        await made.put("a", bytes(990))
        with pytest.raises(ValueTooLarge, match="headers"):
            await made.create("b", bytes(990))


async def test_names_are_those_of_buckets_only(opened, name):
    async with opened() as jet:
        await bucket(jet, name)
        await jet.create_stream(StreamConfig(name=f"KV_{name}_x", subjects=[f"{name}.x"]))
        await jet.create_stream(StreamConfig(name=f"OBJ_{name}_x", subjects=[f"{name}.y"]))
        found = [each async for each in jet.key_value_names() if each.startswith(name)]
        assert found == [name]
        assert not [each async for each in jet.object_store_names() if each.startswith(name)]
