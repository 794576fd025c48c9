"""Views of a bucket: codecs of keys and values, typed values, and the cache."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import pytest
from attrs import frozen

import js_async as js
from tests._async.buckets import bucket, listed, state, summary
from tests._async.flow import eventually, together
from twinstream.codecs import Base64Keys, CloudEventCodec, KeyCodecs, PathKeys
from twinstream.errors import UnsuitableSettings
from twinstream.models import KeyValueConfig, StreamConfig, evolve


class Zipped:
    """A codec that compresses values."""

    def encode(self, value):
        return zlib.compress(value)

    def decode(self, data):
        return zlib.decompress(data)


class Upper:
    """A codec of keys that does not support filters."""

    def encode(self, key):
        return key.upper()

    def decode(self, key):
        return key.lower()


@frozen
class Price:
    cents: int
    note: str = ""


@dataclass
class Point:
    x: int
    y: float


# ---- codecs


async def test_keys_in_base64(opened, name):
    async with opened() as jet:
        plain = await bucket(jet, name)
        made = plain.with_codecs(key=Base64Keys())
        assert await made.put("a.b", b"1") == 1
        # As orbit writes it.
        assert (await plain.get("YQ.Yg")).value == b"1"
        entry = await made.get("a.b")
        assert (entry.key, entry.raw_key) == ("a.b", "YQ.Yg")
        for key in ("mit Leerzeichen", "grün.ö:*", "?>"):
            await made.put(key, key.encode())
            assert (await made.get(key)).value == key.encode()
        assert await listed(made.keys("a.*")) == ["a.b"]
        assert len(await listed(made.keys())) == 4
        assert sorted(await made.get_many("a.>")) == ["a.b"]
        with pytest.raises(js.KeyNotFound, match="'nie da'"):
            await made.get("nie da")
        async with made.watch("a.*") as watch:
            assert await state(watch) == [("a.b", "put", b"1")]


async def test_keys_that_are_paths(opened, name):
    async with opened() as jet:
        plain = await bucket(jet, name)
        made = plain.with_codecs(key=PathKeys())
        for key, stored in (("/x/y", "_root_.x.y"), ("/", "_root_"), ("x/y", "x.y")):
            revision = await made.put(key, b"")
            entry = await plain.get(stored)
            assert entry.revision == revision
            assert (await made.get(key)).key == key
        await made.put("/x/z/", b"")
        assert (await made.get("/x/z")).key == "/x/z"
        assert await listed(made.keys("/x/*")) == ["/x/y", "/x/z"]
        with pytest.raises(js.BadArgument, match="contains a dot"):
            await made.put("/x.y", b"")


async def test_codecs_come_one_after_the_other(opened, name):
    async with opened() as jet:
        plain = await bucket(jet, name)
        made = plain.with_codecs(key=Upper(), value=Zipped())
        await made.put("abc", b"x" * 1000)
        stored = await plain.get("ABC")
        assert zlib.decompress(stored.value) == b"x" * 1000
        assert stored.size < 100
        assert (await made.get("abc")).value == b"x" * 1000
        with pytest.raises(js.BadArgument, match="Upper has no encode_filter"):
            made.keys("a.*")
        assert await listed(made.keys("abc")) == ["abc"]
        chained = plain.with_codecs(key=KeyCodecs(PathKeys(), Upper()))
        await chained.put("/a/b", b"")
        assert (await plain.get("_ROOT_.A.B")).value == b""
        prices = made.typed(Price)
        await prices.put("tea", Price(350))
        assert (await prices.get("tea")).value == Price(350)
        assert zlib.decompress((await plain.get("TEA")).value) == b'{"cents":350,"note":""}'


async def test_undecodable_messages_are_reported(opened, name):
    async with opened() as jet:
        plain = await bucket(jet, name, history=3)
        made = plain.typed(Price)
        await made.put("good", Price(1))
        await plain.put("bad", b"{")
        with pytest.raises(ValueError, match="Expecting property name"):
            await made.get("bad")
        entry = await made.entry("bad")
        assert (entry.value, entry.raw_value) == (None, b"{")
        assert entry.error is not None
        await made.delete("good")
        async with made.watch() as watch:
            first, second = await watch.next(timeout=20), await watch.next(timeout=20)
        assert (first.key, first.raw_value, first.value) == ("bad", b"{", None)
        assert isinstance(first.error, ValueError)
        assert summary(second) == ("good", "delete", None)
        await made.put("other", Price(2))
        found = await made.get_many()
        assert list(found) == ["bad", "other"]
        assert (found["bad"].value, found["bad"].raw_value) == (None, b"{")
        assert isinstance(found["bad"].error, ValueError)
        assert (found["other"].value, found["other"].error) == (Price(2), None)
        await made.put("bad", Price(3))
        revisions = await made.history("bad")
        assert [(each.value, each.error is None) for each in revisions] == [
            (None, False),
            (Price(3), True),
        ]


async def test_undecodable_keys_are_in_get_many_under_their_stored_keys(opened, name):
    async with opened() as jet:
        plain = await bucket(jet, name)
        made = plain.with_codecs(key=Base64Keys())
        await made.put("Z", b"1")
        await made.put("a", b"2")
        # A stored key that is also the name of a key, and another spelling of a stored key.
        await plain.put("a", b"3")
        await plain.put("YR", b"4")
        found = await made.get_many()
        assert {key: entry.value for key, entry in found.items() if entry.error is None} == {
            "Z": b"1",
            "a": b"2",
        }
        broken = {key: entry.raw_value for key, entry in found.items() if entry.error is not None}
        assert broken == {f"$KV.{name}.a": b"3", "YR": b"4"}
        assert [entry.revision for entry in found.values()] == sorted(
            entry.revision for entry in found.values()
        )


@pytest.mark.parametrize(
    ("codec", "key", "foreign"),
    [(PathKeys(), "a/b", "a/b"), (Base64Keys(), "a", "a"), (Base64Keys(), "a", "YR")],
)
async def test_a_foreign_stored_key_is_not_a_key_of_the_application(
    opened, name, codec, key, foreign
):
    async with opened() as jet:
        plain = await bucket(jet, name, history=5)
        made = plain.with_codecs(key=codec)
        await made.put(key, b"mine")
        async with made.cached() as cache:
            await plain.put(foreign, b"theirs")
            found = await made.get_many()
            assert found[key].value == b"mine"
            (broken,) = [entry for entry in found.values() if entry.error is not None]
            assert (broken.raw_key, broken.raw_value) == (foreign, b"theirs")
            await plain.delete(foreign)
            await made.put("last", b"x")

            async def has_all():
                return cache.entry("last")

            await eventually(has_all)
            assert cache.get(key) == b"mine"
            assert sorted(cache) == sorted([key, "last"])


@pytest.mark.parametrize("value", [b"{", b"[" * 100_000, b"1" * 5000], ids=["bad", "deep", "long"])
async def test_an_undecodable_value_replaces_the_one_before_it_in_a_cache(opened, name, value):
    async with opened() as jet:
        plain = await bucket(jet, name)
        made = plain.with_codecs(key=Base64Keys()).typed(int)
        await made.put("a", 1)
        await plain.put("YQ", value)
        async with made.cached() as cache:
            hint = r"Expecting|recursion|limit|nested"
            with pytest.raises((ValueError, RecursionError), match=hint):
                cache.get("a")
        (entry,) = (await made.get_many()).values()
        assert (entry.key, entry.raw_key) == ("a", "YQ")


@pytest.mark.parametrize(
    ("model", "value", "stored"),
    [
        (Price, Price(1, "a"), b'{"cents":1,"note":"a"}'),
        (Point, Point(1, 2.5), b'{"x":1,"y":2.5}'),
        (str, "grün", '"grün"'.encode()),
        (int, 7, b"7"),
        (dict[str, int], {"a": 1}, b'{"a":1}'),
        (list[Price], [Price(1)], b'[{"cents":1,"note":""}]'),
    ],
)
async def test_typed_values(opened, name, model, value, stored):
    async with opened() as jet:
        plain = await bucket(jet, name, history=5)
        made = plain.typed(model)
        revision = await made.create("a", value)
        entry = await made.get("a")
        assert (entry.value, entry.raw_value) == (value, stored)
        assert await made.update("a", value, revision) == 2
        assert [each.value for each in await made.history("a")] == [value, value]
        async with made.watch() as watch:
            assert await state(watch) == [("a", "put", value)]


async def test_a_value_that_does_not_fit_names_bucket_and_key(opened, name):
    class Odd:
        pass

    async with opened() as jet:
        plain = await bucket(jet, name)
        await plain.put("text", b"tea")
        await plain.put("list", b"[1]")
        await plain.put("member", b'{"cents": "x"}')
        made = plain.typed(Price)
        for key, reason in {
            "text": "Expecting value",
            "list": "",
            "member": "invalid value for int: got str",
        }.items():
            where = rf"^bucket {name}, key '{key}', revision \d"
            hint = rf"{where}: the payload does not fit Price.*{reason}"
            with pytest.raises(js.BadPayload, match=hint) as caught:
                await made.get(key)
            assert (caught.value.bucket, caught.value.key) == (name, key)
            assert caught.value.revision > 0
            assert (await made.entry(key)).error is not None
        where = f"^bucket {name}, key 'k': "
        for call in (made.put, made.create):
            with pytest.raises(
                js.BadArgument, match=rf"{where}typed\(Price\): a value of type dict"
            ):
                await call("k", {"cents": 1})
        with pytest.raises(js.BadArgument, match=r"cannot encode Odd: .*: use a class of attrs"):
            plain.typed(Odd)
        with pytest.raises(js.BadArgument, match="writes headers, which a bucket does not store"):
            plain.typed(CloudEventCodec(Price, "binary"))
        with pytest.raises(js.BadArgument, match=f"{where}a value must be bytes"):
            await plain.put("k", "text")


async def test_the_error_of_an_own_codec_stays_and_has_a_note(opened, name):
    class Broken:
        def encode(self, value):
            raise LookupError("mine")

        decode = encode

    async with opened() as jet:
        plain = await bucket(jet, name)
        await plain.put("k", b"tea")
        made = plain.with_codecs(value=Broken())
        with pytest.raises(LookupError, match="mine") as caught:
            await made.get("k")
        assert caught.value.__notes__ == [f"bucket {name}, key 'k'"]
        with pytest.raises(LookupError, match="mine") as caught:
            await made.put("k", 1)
        assert caught.value.__notes__ == [f"bucket {name}, key 'k'"]


# ---- the cache


async def test_a_cache_reads_what_it_writes(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        await made.put("b", b"1")
        await made.delete("b")
        async with made.cached() as cache:
            assert cache["a"] == b"1"
            assert cache.is_current
            assert (list(cache), len(cache)) == (["a"], 1)
            assert "b" not in cache
            for number in range(50):
                revision = await cache.put("n", b"%d" % number)
                assert cache["n"] == b"%d" % number
                assert cache.entry("n").revision == revision
            await cache.update("n", b"x", revision)
            assert cache["n"] == b"x"
            await cache.delete("n")
            assert "n" not in cache
            with pytest.raises(js.KeyNotFound):
                _ = cache["n"]
            assert cache.get("n") is None
            assert cache.get("n", b"default") == b"default"
            await cache.create("n", b"y")
            assert cache["n"] == b"y"
            await cache.purge("n")
            assert cache.entry("n") is None
            # The watch has delivered all of it, and nothing older has come back.
            status = await made.status()

            async def delivered():
                return cache.revision >= status.last_revision

            await eventually(delivered)
            assert list(cache) == ["a"]
        assert [each async for each in jet.bind_stream(made.stream_name).consumer_names()] == []


async def test_the_revision_of_a_cache_is_not_ahead_of_its_values(opened, name):
    """Another thread may look while a revision that has arrived is decoded."""

    class Looking(Zipped):
        def decode(self, data):
            for cache in caches:
                looked.append(cache.revision)
            return super().decode(data)

    async with opened() as jet:
        plain = await bucket(jet, name)
        made, caches, looked = plain.with_codecs(value=Looking()), [], []
        await made.put("a", b"1")
        changes = []

        def note(entry):
            changes.append((entry.revision, cache.revision))

        async with made.cached(on_change=note) as cache:
            assert cache.revision == 1
            caches.append(cache)
            await made.put("a", b"2")

            async def is_followed():
                return cache.revision == 2

            await eventually(is_followed)
            assert (looked, cache["a"]) == ([1], b"2")

            async def is_noted():
                return changes

            assert await eventually(is_noted) == [(2, 2)]


async def test_a_cache_sees_what_others_write(opened, name):
    async with opened() as jet:
        made = (await bucket(jet, name)).typed(int)
        changes = []
        async with made.cached("a.*", on_change=changes.append) as cache:
            await made.put("a.x", 1)
            await made.put("b.x", 2)
            await cache.put("b.y", 3)
            await made.put("a.y", 4)

            async def seen():
                return len(cache) == 2

            await eventually(seen)
            assert isinstance(cache, Mapping)
            assert cache == {"a.x": 1, "a.y": 4}
            assert (sorted(cache.keys()), sorted(cache.values())) == (["a.x", "a.y"], [1, 4])
            assert ("a.x", 1) in cache.items()
            await made.delete("a.x")

            async def gone():
                return "a.x" not in cache

            await eventually(gone)
        assert [summary(each) for each in changes] == [
            ("a.x", "put", 1),
            ("a.y", "put", 4),
            ("a.x", "delete", None),
        ]


async def test_cache_of_a_recreated_or_deleted_bucket(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for number in range(9):
            await made.put("old", b"%d" % number)
        async with made.cached() as cache:
            assert cache["old"] == b"8"
            await jet.delete_key_value(name)

            async def ended():
                try:
                    return cache.get("old") is None
                except js.BucketNotFound:
                    return True

            await eventually(ended)
            assert not cache.is_current


async def test_writers_of_one_cache_do_not_disturb_each_other(opened, name):
    async with opened() as jet:
        made = (await bucket(jet, name)).typed(int)
        async with made.cached() as cache:

            async def write():
                for number in range(60):
                    revision = await cache.put("a", number)
                    # Another writer may have been faster since, but nothing older is there.
                    assert cache.entry("a").revision >= revision

            await together(*[write] * 4)
            last = await made.get("a")
            assert cache["a"] == last.value


async def test_a_cache_needs_to_hear_of_what_expires(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, ttl=timedelta(hours=1))
        with pytest.raises(UnsuitableSettings, match="set limit_marker_ttl"):
            await made.cached()


@pytest.mark.since("2.11")
async def test_what_expires_leaves_the_cache(opened, name):
    async with opened() as jet:
        config = KeyValueConfig(
            bucket=name,
            ttl=timedelta(hours=1),
            limit_marker_ttl=timedelta(seconds=5),
            storage="memory",
        )
        made = await jet.create_key_value(config)
        await made.put("a", b"1")
        async with made.cached() as cache:
            assert "a" in cache
            await made.change(lambda config: evolve(config, ttl=timedelta(seconds=1)))

            async def gone():
                return "a" not in cache

            await eventually(gone)


@pytest.mark.since("2.11")
async def test_what_expires_without_a_marker_leaves_the_cache(opened, name):
    async with opened() as jet:
        # Its watchers do not hear when a value has expired.
        await jet.create_stream(
            StreamConfig(
                name=f"KV_{name}",
                subjects=[f"$KV.{name}.>"],
                allow_msg_ttl=True,
                max_msgs_per_subject=1,
                allow_rollup_hdrs=True,
            )
        )
        made = await jet.get_key_value(name)
        await made.put("long", b"1", ttl=60)
        await made.put("short", b"1", ttl=1)
        async with made.cached() as cache:

            async def expired():
                return list(cache) == ["long"]

            await eventually(expired)
            assert cache["long"] == b"1"
