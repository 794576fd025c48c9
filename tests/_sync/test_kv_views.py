# Generated from tests/_async/test_kv_views.py by codegen/twin.py. Edit that file instead.
"""Views of a bucket: codecs of keys and values, typed values, and the cache."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import timedelta

import pytest
from attrs import frozen

import js_sync as js
from twinstream.models import KeyValueConfig
from tests._sync.buckets import bucket, listed, state, told
from tests._sync.flow import eventually, together


class Zipped:
    """Values that are compressed."""

    def encode(self, value):
        return zlib.compress(value)

    def decode(self, data):
        return zlib.decompress(data)


class Upper:
    """A codec of keys that has no filters."""

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


def test_keys_in_base64(opened, name):
    with opened() as jet:
        plain = bucket(jet, name)
        made = plain.with_codecs(key=js.Base64Keys())
        assert made.put("a.b", b"1") == 1
        # As orbit writes it.
        assert (plain.get("YQ.Yg")).value == b"1"
        entry = made.get("a.b")
        assert (entry.key, entry.raw_key) == ("a.b", "YQ.Yg")
        for key in ("mit Leerzeichen", "grün.ö:*", "?>"):
            made.put(key, key.encode())
            assert (made.get(key)).value == key.encode()
        assert listed(made.keys("a.*")) == ["a.b"]
        assert len(listed(made.keys())) == 4
        assert sorted(made.get_many("a.>")) == ["a.b"]
        with pytest.raises(js.KeyNotFound, match="'nie da'"):
            made.get("nie da")
        with made.watch("a.*") as watch:
            assert state(watch) == [("a.b", "put", b"1")]


def test_keys_that_are_paths(opened, name):
    with opened() as jet:
        plain = bucket(jet, name)
        made = plain.with_codecs(key=js.PathKeys())
        for key, stored in (("/x/y", "_root_.x.y"), ("/", "_root_"), ("x/y", "x.y")):
            revision = made.put(key, b"")
            entry = plain.get(stored)
            assert entry.revision == revision
            assert (made.get(key)).key == key
        made.put("/x/z/", b"")
        assert (made.get("/x/z")).key == "/x/z"
        assert listed(made.keys("/x/*")) == ["/x/y", "/x/z"]
        with pytest.raises(js.BadArgument, match="holds a dot"):
            made.put("/x.y", b"")


def test_codecs_come_one_after_the_other(opened, name):
    with opened() as jet:
        plain = bucket(jet, name)
        made = plain.with_codecs(key=Upper(), value=Zipped())
        made.put("abc", b"x" * 1000)
        stored = plain.get("ABC")
        assert zlib.decompress(stored.value) == b"x" * 1000
        assert stored.size < 100
        assert (made.get("abc")).value == b"x" * 1000
        with pytest.raises(js.BadArgument, match="Upper has no encode_filter"):
            made.keys("a.*")
        assert listed(made.keys("abc")) == ["abc"]
        chained = plain.with_codecs(key=js.KeyCodecs(js.PathKeys(), Upper()))
        chained.put("/a/b", b"")
        assert (plain.get("_ROOT_.A.B")).value == b""
        prices = made.typed(Price)
        prices.put("tea", Price(350))
        assert (prices.get("tea")).value == Price(350)
        assert zlib.decompress((plain.get("TEA")).value) == b'{"cents":350,"note":""}'


def test_what_cannot_be_decoded_is_told(opened, name):
    with opened() as jet:
        plain = bucket(jet, name)
        made = plain.typed(Price)
        made.put("good", Price(1))
        plain.put("bad", b"{")
        with pytest.raises(ValueError, match="Expecting property name"):
            made.get("bad")
        entry = made.entry("bad")
        assert (entry.value, entry.raw_value) == (None, b"{")
        assert entry.error is not None
        made.delete("good")
        with made.watch() as watch:
            first, second = watch.next(20), watch.next(20)
        assert (first.key, first.raw_value, first.value) == ("bad", b"{", None)
        assert isinstance(first.error, ValueError)
        assert told(second) == ("good", "delete", None)
        with pytest.raises(ValueError, match="Expecting"):
            made.get_many()


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
def test_typed_values(opened, name, model, value, stored):
    with opened() as jet:
        plain = bucket(jet, name, history=5)
        made = plain.typed(model)
        revision = made.create("a", value)
        entry = made.get("a")
        assert (entry.value, entry.raw_value) == (value, stored)
        assert made.update("a", value, revision) == 2
        assert [each.value for each in made.history("a")] == [value, value]
        with made.watch() as watch:
            assert state(watch) == [("a", "put", value)]


# ---- the cache


def test_a_cache_reads_what_it_writes(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        made.put("a", b"1")
        made.put("b", b"1")
        made.delete("b")
        with made.cached() as cache:
            assert cache["a"] == b"1"
            assert cache.is_current
            assert (list(cache), len(cache)) == (["a"], 1)
            assert "b" not in cache
            for number in range(50):
                revision = cache.put("n", b"%d" % number)
                assert cache["n"] == b"%d" % number
                assert cache.entry("n").revision == revision
            cache.update("n", b"x", revision)
            assert cache["n"] == b"x"
            cache.delete("n")
            assert "n" not in cache
            with pytest.raises(js.KeyNotFound):
                _ = cache["n"]
            assert cache.get("n") is None
            assert cache.get("n", b"default") == b"default"
            cache.create("n", b"y")
            assert cache["n"] == b"y"
            cache.purge("n")
            assert cache.entry("n") is None
            # The watch has delivered all of it, and nothing older has come back.
            status = made.status()

            def delivered():
                return cache.revision >= status.last_revision

            eventually(delivered)
            assert list(cache) == ["a"]
        assert [each for each in made.stream.consumer_names()] == []


def test_a_cache_sees_what_others_write(opened, name):
    with opened() as jet:
        made = (bucket(jet, name)).typed(int)
        changes = []
        with made.cached("a.*", on_change=changes.append) as cache:
            made.put("a.x", 1)
            made.put("b.x", 2)
            cache.put("b.y", 3)
            made.put("a.y", 4)

            def seen():
                return len(cache) == 2

            eventually(seen)
            assert {key: cache[key] for key in cache} == {"a.x": 1, "a.y": 4}
            made.delete("a.x")

            def gone():
                return "a.x" not in cache

            eventually(gone)
        assert [told(each) for each in changes] == [
            ("a.x", "put", 1),
            ("a.y", "put", 4),
            ("a.x", "delete", None),
        ]


def test_a_cache_of_a_bucket_that_is_created_again_or_gone(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        for number in range(9):
            made.put("old", b"%d" % number)
        with made.cached() as cache:
            assert cache["old"] == b"8"
            jet.delete_key_value(name)

            def ended():
                try:
                    return cache.get("old") is None
                except js.BucketNotFound:
                    return True

            eventually(ended)
            assert not cache.is_current


def test_writers_of_one_cache_do_not_disturb_each_other(opened, name):
    with opened() as jet:
        made = (bucket(jet, name)).typed(int)
        with made.cached() as cache:

            def write():
                for number in range(60):
                    revision = cache.put("a", number)
                    # Another writer may have been faster since, but nothing older is there.
                    assert cache.entry("a").revision >= revision

            together(*[write] * 4)
            last = made.get("a")
            assert cache["a"] == last.value


def test_a_cache_needs_to_hear_of_what_expires(opened, name):
    with opened() as jet:
        made = bucket(jet, name, ttl=timedelta(hours=1))
        with pytest.raises(js.NotPromised, match="set limit_marker_ttl"):
            made.cached()


@pytest.mark.since("2.11")
def test_what_expires_leaves_the_cache(opened, name):
    with opened() as jet:
        config = KeyValueConfig(
            bucket=name,
            ttl=timedelta(seconds=1),
            limit_marker_ttl=timedelta(seconds=5),
            storage="memory",
        )
        made = jet.create_key_value(config)
        made.put("a", b"1")
        with made.cached() as cache:
            assert "a" in cache

            def gone():
                return "a" not in cache

            eventually(gone)
