"""Reading and writing single keys: values, markers, conditions, TTL."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

import js_async as js
from tests._async.buckets import bucket, listed, summary
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, together
from tests._async.lossy import Lossy
from tests.inside import api_of, session_of
from twinstream.errors import UnsuitableSettings
from twinstream.models import StreamSource, evolve


async def test_what_was_put_is_got(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=3)
        for number, value in enumerate((b"", b"\0", b"x" * 100_000), 1):
            assert await made.put("a/b=c.d-e_f", value) == number
            entry = await made.get("a/b=c.d-e_f")
            assert (entry.key, entry.value, entry.revision) == ("a/b=c.d-e_f", value, number)
            assert (entry.bucket, entry.size) == (name, len(value))
            assert entry.operation is js.KeyValueOperation.PUT
            assert entry.is_value
        first = await made.get("a/b=c.d-e_f", revision=1)
        assert (first.value, first.revision) == (b"", 1)
        assert first.created < entry.created
        assert await made.put("view", memoryview(b"seen")) == 4
        assert (await made.get("view", stale=True)).value == b"seen"


async def test_key_without_a_value_is_distinguished_from_an_empty_value(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=5)
        with pytest.raises(js.KeyNotFound, match=f"bucket {name} has no key 'a'") as caught:
            await made.get("a")
        assert not isinstance(caught.value, js.KeyDeleted)
        assert isinstance(caught.value, LookupError)
        assert await made.entry("a") is None
        await made.put("a", b"")
        assert (await made.get("a")).value == b""
        assert await made.delete("a") == 2
        with pytest.raises(js.KeyDeleted) as caught:
            await made.get("a")
        marker = caught.value.entry
        assert (marker.operation, marker.revision) == (js.KeyValueOperation.DELETE, 2)
        assert marker.value is None
        assert not marker.is_value
        assert (await made.entry("a")).revision == 2
        with pytest.raises(js.KeyDeleted):
            await made.get("a", revision=2)
        assert (await made.get("a", revision=1)).value == b""
        assert await made.purge("a") == 3
        assert (await made.entry("a")).operation is js.KeyValueOperation.PURGE
        # Of another key, removed, or never there.
        await made.put("b", b"")
        for revision in (1, 4, 99):
            with pytest.raises(js.KeyNotFound, match=f"at revision {revision}"):
                await made.get("a", revision=revision)


async def test_update_replaces_what_it_expects(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        assert await made.update("a", b"2", 1) == 2
        with pytest.raises(js.RevisionMismatch, match="it is at 2") as caught:
            await made.update("a", b"3", 1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert isinstance(caught.value, js.WrongLastSequence)
        for call in (made.delete, made.purge):
            with pytest.raises(js.RevisionMismatch):
                await call("a", revision=1)
        with pytest.raises(js.RevisionMismatch) as caught:
            await made.update("never", b"", 7)
        assert caught.value.actual == 0
        for bad in (0, -1, True, "1", None):
            with pytest.raises(js.BadArgument, match="create stores a key that has no value"):
                await made.update("a", b"", bad)
        assert await made.delete("a", revision=2) == 3
        assert await made.purge("a", revision=3) == 4


async def test_create_needs_a_key_without_a_value(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=4)
        assert await made.create("a", b"1") == 1
        with pytest.raises(js.KeyExists, match="use update to replace it conditionally") as caught:
            await made.create("a", b"2")
        assert caught.value.entry.value == b"1"
        assert caught.value.actual == 1
        await made.delete("a")
        assert await made.create("a", b"3") == 3
        await made.purge("a")
        assert await made.create("a", b"4") == 5
        assert [summary(each) for each in await made.history("a")] == [
            ("a", "purge", None),
            ("a", "put", b"4"),
        ]


async def test_of_many_creators_one_wins(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for _ in range(10):

            async def attempt(number):
                try:
                    return await made.create("a", b"%d" % number)
                except js.KeyExists as error:
                    return error

            results = await together(*(partial(attempt, number) for number in range(8)))
            (won,) = [each for each in results if isinstance(each, int)]
            assert {each.actual for each in results if not isinstance(each, int)} == {won}
            await made.delete("a", revision=won)


async def test_counting_up_by_update_loses_nothing(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("n", b"0")

        async def count():
            for _ in range(25):
                while True:
                    entry = await made.get("n")
                    try:
                        await made.update("n", b"%d" % (int(entry.value) + 1), entry.revision)
                        break
                    except js.RevisionMismatch:
                        continue

        await together(*[count] * 4)
        assert (await made.get("n")).value == b"100"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "is empty"),
        (".a", "begins or ends with a dot"),
        ("a.", "begins or ends with a dot"),
        ("a..b", "two dots in a row"),
        ("a b", "contains ' '"),
        ("a\n", r"contains '\\n'"),
        ("a.*", r"contains '\*'.* one key: get_many\(keys\) .* watch\(keys, history=True\)"),
        (">", "contains '>'"),
        ("a*", r"contains '\*'"),
        (7, "is not a string"),
    ],
)
async def test_keys_that_no_peer_accepts(opened, name, key, words):
    async with opened() as jet:
        made = await bucket(jet, name)
        for call in (
            lambda: made.get(key),
            lambda: made.put(key, b""),
            lambda: made.create(key, b""),
            lambda: made.update(key, b"", 1),
            lambda: made.delete(key),
            lambda: made.purge(key),
            lambda: made.history(key),
        ):
            with pytest.raises(js.InvalidKey, match=words):
                await call()


async def test_values_are_bytes(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        with pytest.raises(js.BadArgument, match="encode it"):
            await made.put("a", "text")
        with pytest.raises(js.BadArgument, match="got int"):
            await made.create("a", 7)


async def test_keys_of_other_writers_are_read(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for key in ("a:b", "é", "plain"):
            await jet.publish(f"$KV.{name}.{key}", b"x")
        assert await listed(made.keys()) == ["a:b", "plain", "é"]
        assert sorted(await made.get_many()) == ["a:b", "plain", "é"]


async def test_what_other_words_of_markers_mean(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for headers, operation in (
            ({"KV-Operation": "PUT"}, "put"),
            ({"KV-Operation": "DEL"}, "delete"),
            ({"KV-Operation": "PURGE"}, "purge"),
            ({"KV-Operation": "NEW"}, "delete"),
            ({"Nats-Marker-Reason": "MaxAge"}, "expired"),
            ({"Nats-Marker-Reason": "Purge"}, "purge"),
            ({"Nats-Marker-Reason": "Remove"}, "delete"),
            ({"Nats-Marker-Reason": "New"}, "delete"),
            ({"Other": "x"}, "put"),
        ):
            await jet.publish(f"$KV.{name}.a", b"", headers=headers)
            assert (await made.entry("a")).operation == operation


async def test_many_keys_at_one_revision(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=5)
        for number in range(5):
            await made.put(f"a.{number}", b"%d" % number)
        await made.put("b", b"b")
        await made.delete("a.0")
        found = await made.get_many(["a.*", "b"])
        assert {key: entry.value for key, entry in found.items()} == {
            **{f"a.{number}": b"%d" % number for number in range(1, 5)},
            "b": b"b",
        }
        assert found.revision == 7
        before = await made.get_many("a.0", at_revision=6)
        assert before["a.0"].value == b"0"
        assert len(await made.get_many("none")) == 0
        with pytest.raises(js.InvalidKey, match="whole token"):
            await made.get_many("a*")


async def test_history_is_ordered_oldest_first(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=3)
        with pytest.raises(js.KeyNotFound):
            await made.history("a")
        for number in range(3):
            await made.put("a", b"%d" % number)
        await made.delete("a")
        found = await made.history("a")
        assert [each.revision for each in found] == [2, 3, 4]
        assert summary(found[-1]) == ("a", "delete", None)


# ---- lost answers


async def test_a_condition_survives_lost_answers(server, name):
    async with js.connect(server.url) as connection:
        lossy = Lossy(session_of(connection))
        made = await bucket(lossy.jetstream(), name)
        lossy.losses = ["answer"]
        assert await made.create("a", b"1") == 1
        lossy.losses = ["request"]
        assert await made.update("a", b"2", 1) == 2
        lossy.losses = ["answer"]
        assert await made.update("a", b"3", 2) == 3
        lossy.losses = ["answer"]
        assert await made.delete("a", revision=3) == 4
        lossy.losses = ["answer"]
        # First over the marker: the insert is refused, and that refusal gets lost.
        assert await made.create("a", b"5") == 5
        assert (await made.status()).last_revision == 5


async def test_put_with_lost_response_is_found(server, name):
    async with js.connect(server.url) as connection:
        lossy = Lossy(session_of(connection))
        made = await bucket(lossy.jetstream(), name)
        others = await connection.jetstream().get_key_value(name)
        await made.put("a", b"0")

        async def overwritten():
            await others.put("a", b"theirs")

        async def put(*given):
            lossy.losses[:] = given[1:]
            return await made.put("a", given[0])

        assert await put(b"1", "answer") == 2
        assert await put(b"2", "request") == 3
        # The same value once more is another revision.
        assert await put(b"2", "request") == 4
        with pytest.raises(js.OutcomeUnknown, match="revision 6 of another client"):
            await put(b"3", overwritten)
        assert (await made.get("a")).value == b"theirs"
        lossy.losses[:] = ["answer"]
        assert await made.delete("a") == 7
        lossy.losses[:] = ["request"]
        assert await made.purge("a") == 8
        assert (await made.entry("a")).operation is js.KeyValueOperation.PURGE


# ---- time to live


@pytest.mark.since("2.11")
@pytest.mark.parametrize("history", [1, 5])
async def test_an_expired_key_has_a_marker_and_can_be_created(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history, limit_marker_ttl=1)
        await made.delete("a")
        revision = await made.create("a", b"1", ttl=1)

        async def expired():
            entry = await made.entry("a")
            if entry is None:
                # The marker went by itself, before it was looked at.
                await made.create("a", b"1", ttl=1)
            if entry is None or entry.is_value:
                return None
            with pytest.raises(js.KeyNotFound) as caught:
                await made.get("a")
            return isinstance(caught.value, js.KeyDeleted) and (entry, caught.value)

        entry, error = await eventually(expired)
        assert (entry.operation, entry.value) == (js.KeyValueOperation.EXPIRED, None)
        assert entry.revision > revision
        assert "expired" in str(error)
        assert await made.create("a", b"2", ttl=60) > entry.revision
        assert (await made.get("a")).value == b"2"


@pytest.mark.since("2.11")
async def test_times_to_live_are_whole_and_make_no_old_value_come_back(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, limit_marker_ttl=6)
        await made.put("a", b"1", ttl=59.5)
        assert (await made.get("a")).headers["Nats-TTL"] == "60"
        await made.update("a", b"1", 1, ttl=90)
        assert (await made.get("a")).headers["Nats-TTL"] == "90"
        await made.put("a", b"1")
        assert "Nats-TTL" not in (await made.get("a")).headers
        await made.put("a", b"1", ttl="never")
        for bad in (0.5, 0, -1, "soon"):
            with pytest.raises(js.BadArgument, match="ttl"):
                await made.put("a", b"1", ttl=bad)
        deep = await bucket(jet, f"{name}_deep", history=3, limit_marker_ttl=6)
        with pytest.raises(js.BadArgument, match="an older one would reappear"):
            await deep.put("a", b"1", ttl=60)
        with pytest.raises(js.BadArgument, match="an older one would reappear"):
            await deep.update("a", b"1", 1, ttl=60)
        with pytest.raises(js.BadArgument, match="is below limit_marker_ttl, 6 s") as caught:
            await deep.create("a", b"1", ttl=2)
        assert caught.value.__context__ is None  # a traceback shows one error
        await deep.put("b", b"old")
        await deep.delete("b")
        await deep.create("b", b"new", ttl=60)
        # Nothing is below it that could come back.
        assert [summary(each) for each in await deep.history("b")] == [("b", "put", b"new")]


@pytest.mark.since("2.11")
async def test_the_marker_of_a_purge_can_go_by_itself(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=3, limit_marker_ttl=1)
        for key, ttl in (("a", 1), ("b", 300)):
            await made.put(key, b"1")
            await made.purge(key, ttl=ttl)

        async def gone():
            return await made.entry("a") is None

        await eventually(gone)
        assert (await made.entry("b")).operation is js.KeyValueOperation.PURGE


@pytest.mark.parametrize("at", range(1, 5))
async def test_a_history_is_that_of_one_bucket(opened, name, at):
    """The bucket is re-created before a request of the read."""
    async with opened() as jet:
        made = await bucket(jet, name, history=9)
        for number in range(9):
            await made.put("k", b"old %d" % number)

        async def wait():
            left.pop()
            if left:
                disturbed.expect(name, before=wait)
                return
            await jet.delete_key_value(name)
            again = await bucket(jet, name, history=9)
            for number in range(3):
                await again.put("k", b"new %d" % number)

        left = list(range(at))
        disturbed = Disturbed(api_of(jet).transport)
        far = await disturbed.jetstream(timeout=20).get_key_value(name)
        disturbed.expect(name, before=wait)
        values = [entry.value for entry in await far.history("k", idle_timeout=20)]
        old = [b"old %d" % number for number in range(9)]
        assert values in (old, [b"new %d" % number for number in range(3)])


@pytest.mark.since("2.11")
async def test_an_expired_value_does_not_bring_back_an_older_one(opened, name):
    """Another program raises the history after this one has read the settings."""
    async with opened() as jet:
        made = await bucket(jet, name, limit_marker_ttl=1)
        mirror = await bucket(jet, f"{name}_m", mirror=StreamSource(name=name))
        other = await jet.get_key_value(name)
        await other.change(lambda config: evolve(config, history=3))
        for key in "abcd":
            await other.put(key, b"old")
        revision = await other.put("b", b"old")
        await made.put("a", b"new", ttl=1)
        await made.update("b", b"new", revision, ttl=1)
        assert [each.seq async for each in made.put_many({"c": b"new"}, ttl=1)]
        # The history of the mirror decides nothing.
        with pytest.raises(js.BadArgument, match="history=1"):
            await mirror.put("d", b"new", ttl=1)

        async def expired():
            return await listed(other.keys()) == ["d"]

        await eventually(expired)


@pytest.mark.since("2.11")
async def test_current_settings_decide_over_a_ttl(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=3, limit_marker_ttl=1)
        other = await jet.get_key_value(name)
        await other.change(lambda config: evolve(config, history=1))
        await made.put("a", b"1", ttl=60)
        await other.change(
            lambda config: evolve(config, ttl=timedelta(hours=1), limit_marker_ttl=timedelta())
        )
        with pytest.raises(UnsuitableSettings, match="limit_marker_ttl"):
            await made.cached()


# ---- keys that other clients stored


@pytest.mark.parametrize("key", ["user:1", "~", "a+b.c", "grün", "x" * 300 + "ü", "'\"\\{}"])
async def test_keys_against_the_rules_are_read_and_removed(opened, name, key):
    async with opened() as jet:
        made = await bucket(jet, name, history=3)
        await jet.publish(f"$KV.{name}.{key}", b"1")
        assert (await made.get(key)).value == b"1"
        assert (await made.get(key, stale=True)).value == b"1"
        assert (await made.get(key, revision=1)).key == key
        assert sorted(await made.get_many(key)) == [key]
        assert [each.key for each in await made.history(key)] == [key]
        assert await listed(made.keys(key)) == [key]
        async with made.watch(key) as watch:
            assert (await watch.next(timeout=20)).key == key
        for call in (
            lambda: made.put(key, b"2"),
            lambda: made.create(key, b"2"),
            lambda: made.update(key, b"2", 1),
        ):
            with pytest.raises(js.InvalidKey, match="validate_keys=False"):
                await call()
        [refused] = [each async for each in made.put_many({key: b""}, raise_failures=False)]
        assert isinstance(refused.error, js.InvalidKey)
        free = await jet.get_key_value(name, validate_keys=False)
        assert await free.put(key, b"2") == 2
        assert await free.typed(str).update(key, "3", 2) == 3
        outcomes = jet.bind_key_value(name, validate_keys=False).put_many({key: b"4"})
        assert [each.seq async for each in outcomes] == [4]
        assert await made.delete(key, revision=4) == 5
        assert await free.create(key, b"5") == 6
        assert await made.purge(key) == 7
        assert await listed(made.keys()) == []
        async with made.cached() as cache:
            await cache.purge(key)
            assert key not in cache


@pytest.mark.parametrize("key", ["", ".", "a..b", "a b", "*", "a.>", "a\n", "\udc80"])
async def test_a_key_that_no_message_has_is_refused(opened, name, key):
    async with opened() as jet:
        made = await bucket(jet, name)
        free = await jet.get_key_value(name, validate_keys=False)
        for call in (
            lambda: made.get(key),
            lambda: made.history(key),
            lambda: made.delete(key),
            lambda: made.purge(key),
            lambda: free.put(key, b""),
        ):
            with pytest.raises(js.InvalidKey):
                await call()


async def test_a_default_is_returned_for_a_key_without_a_value(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        assert await made.get("a", default=None) is None
        await made.put("a", b"no number")
        assert (await made.get("a", default=7)).revision == 1
        assert await made.get("a", revision=9, default="none") == "none"
        with pytest.raises(js.BadPayload):
            await made.typed(int).get("a", default=7)
        await made.delete("a")
        assert await made.get("a", default=7) == 7
        with pytest.raises(KeyError, match=r"^bucket .* has no key 'b'$"):
            await made.get("b")


async def test_one_key_or_several_or_none_are_selected(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        revision = await made.put("b.c", b"2")
        for keys, wanted in (
            (None, ["a", "b.c"]),
            ("a", ["a"]),
            (("a", "b.*"), ["a", "b.c"]),
            ({"none"}, []),
            ([], []),
        ):
            assert sorted(await listed(made.keys(keys))) == wanted
            found = await made.get_many(keys)
            assert (sorted(found), found.revision) == (wanted, revision)
            async with made.cached(keys) as cache:
                assert sorted(cache) == wanted
                revision = await cache.put("a", b"1")
                assert ("a" in cache) is ("a" in wanted)
        assert await listed(made.keys(each for each in ("a", "x"))) == ["a"]


# ---- removing many keys


async def test_many_keys_are_removed_in_one_call(opened, name):
    async with opened() as jet:
        made = (await bucket(jet, name, history=3)).typed(int)
        for key in ("a.1", "a.2", "b.1", "b.2", "c"):
            await made.put(key, 1)
        await jet.publish(f"$KV.{name}.user:1", b"1")
        assert await made.delete_many(["a.*", "c", "none"]) == 3
        assert (await made.entry("a.1")).operation is js.KeyValueOperation.DELETE
        assert await made.entry("none") is None
        assert await made.delete_many("b.>", purge=True) == 2
        assert [each.operation for each in await made.history("b.1")] == [
            js.KeyValueOperation.PURGE
        ]
        assert await listed(made.keys()) == ["user:1"]
        assert await made.delete_many(">", purge=True) == 1
        assert await made.delete_many(">") == 0
        assert await made.delete_many([]) == 0
        with pytest.raises(js.BadArgument, match="'>' for all keys"):
            await made.delete_many(None)
        with pytest.raises(js.BadArgument, match="purge=True"):
            await made.delete_many(">", ttl=5)


async def test_failures_of_removing_many_keys_are_raised(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        await jet.bind_stream(made.stream_name).seal()
        with pytest.raises(js.PublishFailures):
            await made.delete_many("a")
        assert await listed(made.keys()) == ["a"]


async def test_a_full_bucket_says_how_to_make_room_for_a_marker(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=3, max_bytes=1000)
        await made.put("b", b"x" * 400)

        async def fill():
            for number in range(1000):
                await made.put(f"a{number}", b"")

        with pytest.raises(js.StoreFailed):
            await fill()
        for call in (made.delete, made.purge):
            with pytest.raises(js.StoreFailed) as caught:
                await call("b")
            assert ".purge(subject=...)" in str(caught.value)
            assert "max_bytes with change" in str(caught.value)
        await jet.bind_stream(made.stream_name).purge(subject=f"$KV.{name}.b")
        await made.delete("a")
