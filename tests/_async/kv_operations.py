"""The operations of key-value buckets in the table of permissions, run on a server."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually
from twinstream.core.kv.put_many import KeyPutFailure
from twinstream.models import KeyValueConfig, evolve
from twinstream.records.entry import Entry, KeyValueOperation
from twinstream.records.headers import NO_HEADERS
from twinstream.records.key_change import KeyChange, KeyChanges

__all__ = ["BUCKET_ACTS", "BUCKET_PROOFS", "set_bucket"]


async def set_bucket(jet, name):
    """Create the bucket of an operation, with two keys and the marker of a third key."""
    with suppress(js.BucketNotFound):
        await jet.delete_key_value(name)
    if name in {"create_key_value", "create_or_update_key_value"}:
        return
    made = await jet.create_key_value(KeyValueConfig(bucket=name, history=5, storage="memory"))
    await made.put("a", b"1")
    await made.put("b", b"2")
    await made.delete("c")
    if name in {"key_value_at", "key_value_diff"}:
        # Only if a revision was removed, the calls read the others.
        await made.purge("c")


def bound(jet, stage):
    return jet.bind_key_value(stage.stream)


async def get(jet, stage):
    made = bound(jet, stage)
    assert (await made.get("a", stale=True)).value == b"1"
    assert await made.entry("none", stale=True) is None


async def get_revision(jet, stage):
    made = bound(jet, stage)
    assert (await made.get("a", revision=1)).value == b"1"
    assert await made.entry("a", revision=99) is None


async def put(jet, stage):
    assert await bound(jet, stage).put("a", b"2") == 4


async def put_many(jet, stage):
    outcomes = bound(jet, stage).put_many({"a": b"2"}, timeout=stage.short, raise_failures=False)
    [outcome] = [each async for each in outcomes]
    if isinstance(outcome, KeyPutFailure):
        raise outcome.error
    assert outcome.seq == 4


async def create(jet, stage):
    made = bound(jet, stage)
    assert await made.create("new", b"1") == 4
    with pytest.raises(js.KeyExists):
        await made.create("a", b"1")


async def update(jet, stage):
    assert await bound(jet, stage).update("a", b"2", 1) == 4


async def delete(jet, stage):
    assert await bound(jet, stage).delete("a") == 4


async def purge(jet, stage):
    assert await bound(jet, stage).purge("a") == 4


async def keys(jet, stage):
    found = [each async for each in bound(jet, stage).keys(idle_timeout=stage.short)]
    assert sorted(found) == ["a", "b"]


async def delete_many(jet, stage):
    assert await bound(jet, stage).delete_many(">", idle_timeout=stage.short) == 2


async def watch(jet, stage):
    async with bound(jet, stage).watch() as watching:
        found = [each.key async for each in watching.initial()]
        assert found == ["a", "b", "c"]


async def cached(jet, stage):
    async with bound(jet, stage).cached("a") as cache:
        assert cache["a"] == b"1"


async def history(jet, stage):
    (found,) = await bound(jet, stage).history("a", idle_timeout=stage.short)
    assert found.value == b"1"
    with pytest.raises(js.KeyNotFound):
        await bound(jet, stage).history("none", idle_timeout=stage.short)


async def get_many(jet, stage):
    assert sorted(await bound(jet, stage).get_many(["a", "b"], idle_timeout=stage.short)) == [
        "a",
        "b",
    ]


async def at(jet, stage):
    made = bound(jet, stage)
    created = (await made.history("a"))[0].created
    assert sorted(await made.at(created, idle_timeout=stage.short)) == ["a"]


async def diff(jet, stage):
    made = bound(jet, stage)
    created = (await made.history("a"))[0].created
    assert list(await made.diff(created, idle_timeout=stage.short)) == ["b"]


async def revert(jet, stage):
    made = bound(jet, stage)
    changes = {}
    for key, revision in (("a", 1), ("b", 2)):
        at = (revision, KeyValueOperation.PUT, 0, 0, NO_HEADERS)
        changes[key] = KeyChange(key, None, Entry(made.bucket, key, b"", *at, raw_key=key))
    assert not await made.revert(KeyChanges(made.bucket, (0, 2), changes), in_parts=True)


async def purge_deletes(jet, stage):
    done = await bound(jet, stage).purge_deletes(older_than=0, idle_timeout=stage.short)
    assert (done.removed, done.kept) == (1, 0)


async def status(jet, stage):
    assert (await bound(jet, stage).status()).values == 3


async def change(jet, stage):
    changed = await bound(jet, stage).change(lambda config: evolve(config, history=7))
    assert changed.config.history == 7


async def create_key_value(jet, stage):
    await jet.create_key_value(KeyValueConfig(bucket=stage.stream, storage="memory"))


async def update_key_value(jet, stage):
    config = KeyValueConfig(bucket=stage.stream, storage="memory", ttl=timedelta(hours=1))
    assert (await jet.update_key_value(config)).cached_status.config.ttl == timedelta(hours=1)


async def create_or_update_key_value(jet, stage):
    await jet.create_or_update_key_value(KeyValueConfig(bucket=stage.stream, history=2))
    await jet.create_or_update_key_value(KeyValueConfig(bucket=stage.stream, history=3))


async def get_key_value(jet, stage):
    assert (await jet.get_key_value(stage.stream)).bucket == stage.stream


async def delete_key_value(jet, stage):
    await jet.delete_key_value(stage.stream)


async def key_values(jet, stage):
    async def listed():
        return stage.stream in [each.bucket async for each in jet.key_values()]

    await eventually(listed, patience=stage.short)


async def key_value_names(jet, stage):
    assert stage.stream in [each async for each in jet.key_value_names()]


# What each is called with besides the bucket, what does it, and since which server.
BUCKET_ACTS = {
    "create_key_value": ((), create_key_value, "2.11"),
    "update_key_value": ((), update_key_value, "2.11"),
    "create_or_update_key_value": ((), create_or_update_key_value, "2.11"),
    "get_key_value": ((), get_key_value, "2.11"),
    "delete_key_value": ((), delete_key_value, "2.11"),
    "key_values": ((), key_values, "2.11"),
    "key_value_names": ((), key_value_names, "2.11"),
    "key_value.get": ((">",), get, "2.11"),
    "key_value.get_revision": ((), get_revision, "2.11"),
    "key_value.put": (("a",), put, "2.11"),
    "key_value.put_many": (("a",), put_many, "2.11"),
    "key_value.create": ((">",), create, "2.11"),
    "key_value.update": (("a",), update, "2.11"),
    "key_value.delete": (("a",), delete, "2.11"),
    "key_value.purge": (("a",), purge, "2.11"),
    "key_value.keys": ((">",), keys, "2.11"),
    "key_value.delete_many": ((">",), delete_many, "2.11"),
    "key_value.watch": ((">",), watch, "2.11"),
    "key_value.cached": (("a",), cached, "2.11"),
    "key_value.history": ((), history, "2.11"),
    "key_value.get_many": ((), get_many, "2.11"),
    "key_value.at": ((), at, "2.11"),
    "key_value.diff": ((), diff, "2.11"),
    "key_value.revert": ((">",), revert, "2.11"),
    "key_value.purge_deletes": ((), purge_deletes, "2.11"),
    "key_value.status": ((), status, "2.11"),
    "key_value.change": ((), change, "2.11"),
}


async def no_consumer(jet, stage):
    async def gone():
        return not (await bound(jet, stage).status()).info.state.consumer_count

    await eventually(gone, patience=3)


# What shows that an operation is done, to a user who may look.
BUCKET_PROOFS = {"key_value_at": no_consumer, "key_value_diff": no_consumer}
