# Generated from tests/_async/kv_operations.py by codegen/twin.py. Edit that file instead.
"""The operations of key-value buckets in the table of permissions, done for real."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

import js_sync as js
from twinstream.models import KeyValueConfig, evolve
from tests._sync.flow import eventually

__all__ = ["BUCKET_ACTS", "set_bucket"]


def set_bucket(jet, name):
    """Make the bucket of an operation, with two keys and the marker of a third."""
    with suppress(js.BucketNotFound):
        jet.delete_key_value(name)
    if name in {"create_key_value", "create_or_update_key_value"}:
        return
    made = jet.create_key_value(KeyValueConfig(bucket=name, history=5, storage="memory"))
    made.put("a", b"1")
    made.put("b", b"2")
    made.delete("c")


def bound(jet, stage):
    return jet.bind_key_value(stage.stream)


def get(jet, stage):
    made = bound(jet, stage)
    assert (made.get("a", stale=True)).value == b"1"
    assert made.entry("none", stale=True) is None


def get_revision(jet, stage):
    made = bound(jet, stage)
    assert (made.get("a", revision=1)).value == b"1"
    assert made.entry("a", revision=99) is None


def put(jet, stage):
    assert bound(jet, stage).put("a", b"2") == 4


def create(jet, stage):
    made = bound(jet, stage)
    assert made.create("new", b"1") == 4
    with pytest.raises(js.KeyExists):
        made.create("a", b"1")


def update(jet, stage):
    assert bound(jet, stage).update("a", b"2", 1) == 4


def delete(jet, stage):
    assert bound(jet, stage).delete("a") == 4


def purge(jet, stage):
    assert bound(jet, stage).purge("a") == 4


def keys(jet, stage):
    found = [each for each in bound(jet, stage).keys(timeout=stage.short)]
    assert sorted(found) == ["a", "b"]


def watch(jet, stage):
    with bound(jet, stage).watch() as watching:
        for key in ("a", "b", "c"):
            assert (watching.next(stage.short)).key == key
        assert watching.next(stage.short) is None


def cached(jet, stage):
    with bound(jet, stage).cached("a") as cache:
        assert cache["a"] == b"1"


def history(jet, stage):
    (found,) = bound(jet, stage).history("a", timeout=stage.short)
    assert found.value == b"1"
    with pytest.raises(js.KeyNotFound):
        bound(jet, stage).history("none", timeout=stage.short)


def get_many(jet, stage):
    assert sorted(bound(jet, stage).get_many("a", "b", timeout=stage.short)) == ["a", "b"]


def purge_deletes(jet, stage):
    done = bound(jet, stage).purge_deletes(older_than=0, timeout=stage.short)
    assert (done.removed, done.kept) == (1, 0)


def status(jet, stage):
    assert (bound(jet, stage).status()).values == 3


def change(jet, stage):
    changed = bound(jet, stage).change(lambda config: evolve(config, history=7))
    assert changed.config.history == 7


def create_key_value(jet, stage):
    jet.create_key_value(KeyValueConfig(bucket=stage.stream, storage="memory"))


def update_key_value(jet, stage):
    config = KeyValueConfig(bucket=stage.stream, ttl=timedelta(hours=1))
    assert (jet.update_key_value(config)).cached_status.config.ttl == timedelta(hours=1)


def create_or_update_key_value(jet, stage):
    jet.create_or_update_key_value(KeyValueConfig(bucket=stage.stream, history=2))
    jet.create_or_update_key_value(KeyValueConfig(bucket=stage.stream, history=3))


def get_key_value(jet, stage):
    assert (jet.get_key_value(stage.stream)).bucket == stage.stream


def delete_key_value(jet, stage):
    jet.delete_key_value(stage.stream)


def key_values(jet, stage):
    def listed():
        return stage.stream in [each.bucket for each in jet.key_values()]

    eventually(listed, patience=stage.short)


def key_value_names(jet, stage):
    assert stage.stream in [each for each in jet.key_value_names()]


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
    "key_value.create": ((">",), create, "2.11"),
    "key_value.update": (("a",), update, "2.11"),
    "key_value.delete": (("a",), delete, "2.11"),
    "key_value.purge": (("a",), purge, "2.11"),
    "key_value.keys": ((">",), keys, "2.11"),
    "key_value.watch": ((">",), watch, "2.11"),
    "key_value.cached": (("a",), cached, "2.11"),
    "key_value.history": ((), history, "2.11"),
    "key_value.get_many": ((), get_many, "2.11"),
    "key_value.purge_deletes": ((), purge_deletes, "2.11"),
    "key_value.status": ((), status, "2.11"),
    "key_value.change": ((), change, "2.11"),
}
