"""Past states of a bucket: whole, or refused with the earliest state that is held."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

import js_async as js
from js_async.runtime.concurrency import aside
from tests._async.buckets import bucket
from tests._async.flow import eventually, together
from twinstream.core.kv.past import mirror_delay
from twinstream.errors import PastNotHeld, UnsuitableSettings
from twinstream.models import (
    ConsumerConfig,
    KeyValueConfig,
    StreamConfig,
    StreamSource,
    StreamSourceInfo,
    Timestamp,
    evolve,
)
from twinstream.records.entry import KeyValueOperation
from twinstream.records.key_change import KeyChange, KeyChanges

pytestmark = pytest.mark.since("2.11")


def values(entries):
    return {key: entry.value for key, entry in entries.items()}


async def written(made, *writes):
    """Write values: `a=1` puts, `a` deletes. The revisions are 1, 2 and so on in a new bucket."""
    for each in writes:
        key, put, value = each.partition("=")
        await (made.put(key, value.encode()) if put else made.delete(key))


async def states(made, last):
    """Return for each revision up to `last` the values at it, or the error."""
    found = {}
    for revision in range(1, last + 1):
        try:
            found[revision] = values(await made.at(revision))
        except PastNotHeld as error:
            found[revision] = error
    return found


async def held(made, last):
    """Return the revisions whose states are held."""
    found = await states(made, last)
    return [each for each, state in found.items() if not isinstance(state, PastNotHeld)]


@pytest.mark.parametrize("storage", ["memory", "file"])
async def test_each_state_of_a_bucket_without_gaps(opened, name, storage):
    async with opened() as jet:
        made = await bucket(jet, name, history=10, storage=storage)
        await written(made, "a=1", "b=1", "a=2", "a", "c=1", "a=3")
        assert await states(made, 6) == {
            1: {"a": b"1"},
            2: {"a": b"1", "b": b"1"},
            3: {"a": b"2", "b": b"1"},
            4: {"b": b"1"},
            5: {"b": b"1", "c": b"1"},
            6: {"a": b"3", "b": b"1", "c": b"1"},
        }
        entries = await made.at(3)
        assert (entries.bucket, entries.revision, entries["a"].revision) == (name, 3, 3)
        assert values(await made.at(5, "c")) == {"c": b"1"}
        assert values(await made.at(5, ["none", "b"])) == {"b": b"1"}
        assert values(await made.at(5, [])) == {}


async def test_a_time_is_the_state_with_what_was_stored_at_it(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "a=2", "b=1")
        first, second = await made.history("a")
        assert values(await made.at(first.created)) == {"a": b"1"}
        before = Timestamp.from_ns(second.created.ns - 1)
        assert values(await made.at(before)) == {"a": b"1"}
        assert values(await made.at(second.created)) == {"a": b"2"}
        later = await made.at(datetime.now(UTC) + timedelta(days=1))
        assert (values(later), later.revision) == ({"a": b"2", "b": b"1"}, 3)


async def test_what_is_no_moment_of_the_bucket_is_refused(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10, storage="file")
        created = (await made.status()).info.created
        assert values(await made.at(created)) == {}
        await written(made, "a=1")
        with pytest.raises(PastNotHeld, match=r"has no state at .*: it was created at") as early:
            await made.at(created - timedelta(seconds=1))
        assert early.value.earliest_time == created
        with pytest.raises(js.BadArgument, match=f"bucket {name} is at revision 1, not yet at 2"):
            await made.at(2)
        for wrong in (0, -1, True, "1h", None):
            with pytest.raises(js.BadArgument, match="a revision is a whole number"):
                await made.at(wrong)
        with pytest.raises(js.BadArgument, match="moment"):
            await made.at(datetime.now())
        with pytest.raises(js.BucketNotFound):
            await jet.bind_key_value(f"{name}-none").at(1)


async def test_a_restart_of_a_server_empties_a_bucket_in_memory(cluster, name):
    """Afterwards the bucket looks as if it had always been empty."""
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=30)
        lost = await bucket(jet, name, history=10)
        await written(lost, "a=1", "b=1")
        old = (await lost.status()).info
        before = (await lost.get("b")).created
        await aside(cluster.node(old.cluster.leader).restart)

        async def emptied():
            try:
                return (await lost.status()).info.state.last_seq == 0
            except js.TwinstreamError:
                return False

        await eventually(emptied, patience=90)
        assert (await lost.status()).info.created == old.created
        with pytest.raises(PastNotHeld, match=r"in memory, .* it holds no revision") as refused:
            await lost.at(before)
        assert refused.value.earliest_time is None
        with pytest.raises(PastNotHeld):
            await lost.diff(before)
        assert values(await lost.at(datetime.now(UTC) + timedelta(days=1))) == {}
        await written(lost, "c=1", "c=2", "c=3")
        first = (await lost.history("c"))[0].created
        with pytest.raises(PastNotHeld, match="its first stored revision is from") as refused:
            await lost.at(Timestamp.from_ns(first.ns - 1))
        assert refused.value.earliest_time == first
        assert values(await lost.at(first)) == {"c": b"1"}


async def test_the_history_of_a_key(opened, name):
    """The state is known from the oldest stored revision of a full key on."""
    async with opened() as jet:
        made = await bucket(jet, name, history=3)
        await written(made, "a=1", "h=1", "h=2", "b=1", "h=3", "h=4", "c=1", "h=5")
        # Stored of h: 5, 6, 8. Revisions 2 and 3 were removed.
        found = await states(made, 8)
        assert [each for each in found if not isinstance(found[each], PastNotHeld)] == [
            *(1, 5, 6, 7, 8)
        ]
        assert found[1] == {"a": b"1"}
        assert found[5] == {"a": b"1", "b": b"1", "h": b"3"}
        assert found[7] == {"a": b"1", "b": b"1", "c": b"1", "h": b"4"}
        error = found[4]
        oldest = (await made.history("h"))[0]
        assert (error.earliest_revision, error.held_to) == (5, 1)
        assert error.earliest_time == oldest.created
        assert f"from {oldest.created.rfc3339()} (revision 5) on" in str(error)
        assert values(await made.at(error.earliest_time)) == found[5]


async def test_a_full_key_whose_first_revision_is_the_first(opened, name):
    """Without a gap, the number of stored revisions of a key does not matter."""
    async with opened() as jet:
        made = await bucket(jet, name, history=2)
        await written(made, "a=1", "b=1", "h=1", "h=2", "a=2")
        assert await held(made, 5) == [1, 2, 3, 4, 5]
        # The first revision of b is above the only gap, but that of a may have had older ones.
        await written(made, "h=3", "h=4")
        assert await held(made, 7) == [1, 2, 6, 7]


async def test_a_bucket_with_a_history_of_one(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await written(made, "a=1", "b=1", "b=2")
        assert await held(made, 3) == [1, 3]
        await written(made, "a=2")
        assert await held(made, 4) == [4]


async def test_a_purge_of_a_key(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1", "b=2")
        await made.purge("b")
        await written(made, "c=1")
        found = await states(made, 5)
        assert await held(made, 5) == [1, 4, 5]
        assert (found[4], found[5]) == ({"a": b"1"}, {"a": b"1", "c": b"1"})
        assert found[3].earliest_revision == 4


async def test_a_value_after_a_purge_that_was_removed(opened, name):
    """The update of a revision that is not stored shows that the key had one."""
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1")
        await made.update("a", b"2", 1)
        await jet.bind_stream(made.stream_name).purge(subject=f"$KV.{name}.a", keep=1)
        assert await held(made, 3) == [3]


@pytest.mark.parametrize("older_than", [0, float("inf")])
async def test_removed_markers(opened, name, older_than):
    """Without the marker, it is unknown until when the key had a value."""
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1", "c=1", "b", "c=2")
        await made.purge_deletes(older_than=older_than)
        found = await states(made, 5)
        if older_than:
            assert await held(made, 5) == [1, 4, 5]
            assert found[4] == {"a": b"1", "c": b"1"}
        else:
            assert await held(made, 5) == [1]
            assert found[5].earliest_revision is None
            assert "purge_deletes" in str(found[5])
            assert "it holds only its present state, and those up to revision 1" in str(found[5])
        assert values(await made.get_many()) == {"a": b"1", "c": b"2"}


async def test_a_purge_of_the_stream(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1", "a=2")
        stream = jet.bind_stream(made.stream_name)
        await stream.purge(subject=f"$KV.{name}.b")
        assert await held(made, 3) == [1]
        await stream.purge()
        assert await held(made, 3) == []
        await written(made, "a=3")
        assert await held(made, 4) == []
        changes = await diff_of_now(made, 4)
        assert isinstance(changes, PastNotHeld)


async def diff_of_now(made, moment):
    try:
        return await made.diff(moment)
    except PastNotHeld as error:
        return error


async def test_the_last_revision_was_removed(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1")
        await jet.bind_stream(made.stream_name).purge(subject=f"$KV.{name}.b")
        assert await held(made, 2) == [1]


async def test_a_history_that_was_raised(opened, name):
    """The gaps are not the work of the present history, because no key is full."""
    async with opened() as jet:
        made = await bucket(jet, name, history=1)
        await written(made, "a=1", "b=1", "a=2")
        await made.change(lambda config: evolve(config, history=5))
        await written(made, "a=3")
        found = await states(made, 4)
        assert all(isinstance(each, PastNotHeld) for each in found.values())
        await made.change(lambda config: evolve(config, history=1))
        assert await held(made, 4) == [4]


@pytest.mark.parametrize("setting", ["ttl", "limit_marker_ttl"])
async def test_a_bucket_whose_values_expire(opened, name, setting):
    async with opened() as jet:
        hour, second = timedelta(hours=1), timedelta(seconds=1)
        first = hour if setting == "ttl" else second
        made = await bucket(jet, name, history=10, **{setting: first})
        await made.put("a", b"1")
        assert values(await made.at(1)) == {"a": b"1"}
        if setting == "ttl":
            await made.change(lambda config: evolve(config, ttl=second))

            async def expired():
                return not await made.get_many()

            await eventually(expired)
            await made.change(lambda config: evolve(config, ttl=hour))
        else:
            await made.create("b", b"1", ttl=1)

            async def expired():
                entry = await made.entry("b")
                return entry is None or entry.operation is KeyValueOperation.EXPIRED

            await eventually(expired)
        await made.put("c", b"1")
        last = (await made.status()).last_revision
        found = await states(made, last)
        assert isinstance(found[last], PastNotHeld)
        assert ("ttl removes" if setting == "ttl" else "may have a TTL") in str(found[last])
        # The present state stays readable, and is the second one of a difference.
        assert "c" in await made.get_many()


async def test_values_of_a_bucket_with_ttl_that_have_not_expired(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10, ttl=timedelta(days=1))
        await written(made, "a=1", "a=2", "b=1")
        assert await held(made, 3) == [1, 2, 3]


async def test_a_mirror_with_a_longer_history_than_its_origin(opened, name):
    """The mirror lacks what its origin removed before it was copied."""
    async with opened() as jet:
        made = await bucket(jet, name, history=1)
        await written(made, "a=1", "b=1", "b=2")
        config = KeyValueConfig(
            bucket=f"{name}-copy", history=10, mirror=StreamSource(name=name), storage="memory"
        )
        copy = await jet.create_key_value(config)

        async def copied():
            return (await copy.status()).last_revision == (await made.status()).last_revision

        await eventually(copied)
        await written(made, "a=2", "b=3")
        await eventually(copied)
        copy = await jet.get_key_value(f"{name}-copy")
        assert await held(copy, 5) == [1, 3, 4, 5]
        assert values(await copy.at(1)) == {"a": b"1"}
        assert values(await copy.at(4)) == {"a": b"2", "b": b"2"}
        # A key that is new to the mirror may have had a revision that was not copied.
        await written(made, "c=1")
        await eventually(copied)
        assert await held(copy, 6) == [1, 6]


async def test_a_mirror_that_no_longer_hears_from_its_origin(opened, name):
    """Only times before a copied message are known."""
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        copy = await jet.create_key_value(
            KeyValueConfig(
                bucket=f"{name}-copy", history=10, mirror=StreamSource(name=name), storage="memory"
            )
        )
        await written(made, "a=1", "a=2")
        _, second = [each.created for each in await made.history("a")]

        async def copied():
            return (await copy.status()).last_revision == 2

        await eventually(copied)
        assert values(await copy.at(second)) == {"a": b"2"}
        mirror = jet.bind_stream(copy.stream_name)
        await jet.delete_stream(made.stream_name)

        async def silent():
            return (await mirror.info()).mirror.active > timedelta(seconds=10)

        await eventually(silent, patience=90)
        with pytest.raises(PastNotHeld, match="it is a mirror, and it has not heard from"):
            await copy.at(second)


@pytest.mark.parametrize(
    ("mirror", "reason"),
    [
        (None, "does not report"),
        (StreamSourceInfo(name="KV_a", lag=3, active=timedelta(0)), "3 messages behind KV_a"),
        (StreamSourceInfo(name="KV_a", lag=0, active=timedelta(seconds=-1)), "not heard from KV_a"),
        (StreamSourceInfo(name="KV_a", lag=0, active=timedelta(seconds=11)), "KV_a for 11 s"),
        (StreamSourceInfo(name="KV_a", lag=0, active=timedelta(seconds=1)), ""),
    ],
)
async def test_how_far_a_mirror_is_behind(mirror, reason):
    found = mirror_delay(mirror)
    assert (reason in found) if reason else (found == "")


async def test_a_copied_bucket(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=5)
        await written(made, "a=1", "a=2", "b=1")
        config = KeyValueConfig(
            bucket=f"{name}-copy", history=5, sources=[StreamSource(name=name)], storage="memory"
        )
        copy = await jet.create_key_value(config)

        async def copied():
            return (await copy.status()).last_revision == 3

        await eventually(copied)
        assert (await states(copy, 3))[2] == {"a": b"2"}
        assert [each.key for each in (await copy.diff(2)).added] == ["b"]


async def test_a_bucket_of_a_stream_that_begins_later(opened, name):
    async with opened() as jet:
        await jet.create_stream(
            StreamConfig(
                name=f"KV_{name}",
                subjects=[f"$KV.{name}.>"],
                max_msgs_per_subject=5,
                first_seq=100,
                allow_direct=True,
                deny_delete=True,
                storage="memory",
            )
        )
        made = await jet.get_key_value(name)
        await written(made, "a=1", "a=2")
        assert values(await made.at(100)) == {"a": b"1"}
        assert values(await made.at(101)) == {"a": b"2"}


async def test_a_bucket_without_direct_gets_and_with_single_deletes(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(
            StreamConfig(
                name=f"KV_{name}",
                subjects=[f"$KV.{name}.>"],
                max_msgs_per_subject=5,
                storage="memory",
            )
        )
        made = await jet.get_key_value(name)
        await written(made, "a=1", "a=2", "a=3")
        assert await held(made, 3) == [1, 2, 3]
        await stream.delete_message(2)
        assert await held(made, 3) == [1]
        with pytest.raises(PastNotHeld, match="no deny_delete"):
            await made.at(3)


@pytest.mark.parametrize("seed", range(12))
async def test_a_state_is_right_or_refused(opened, name, seed):
    """Random writes and removals; each state that is returned is the one that was written."""
    chance = Random(seed)
    async with opened() as jet:
        made = await bucket(jet, name, history=chance.choice([1, 2, 3, 5]))
        written_states, now, keys = {}, {}, "abcde"[: chance.randint(2, 5)]
        for number in range(chance.randint(5, 50)):
            key, act = chance.choice(keys), chance.random()
            if act < 0.7:
                revision = await made.put(key, b"%d" % number)
                now = {**now, key: b"%d" % number}
            elif act < 0.97:
                revision = await (made.delete(key) if act < 0.85 else made.purge(key))
                now = {each: value for each, value in now.items() if each != key}
            else:
                await made.purge_deletes(older_than=chance.choice([0, float("inf")]))
                continue
            written_states[revision] = now
        found = await states(made, max(written_states))
        for revision, state in found.items():
            if not isinstance(state, PastNotHeld):
                assert state == written_states[revision], revision
            elif state.earliest_revision is not None:
                assert values(await made.at(state.earliest_time)) == found[state.earliest_revision]
                assert state.earliest_revision > revision > state.held_to


async def test_states_during_writes(opened, name):
    """Revisions are removed while a state is read. It is right, or it is refused."""
    async with opened() as jet:
        made = await bucket(jet, name, history=3)
        await written(made, "a=1", "b=1")
        done, outcomes = [], set()

        async def write():
            number = 2
            while not done:
                number += 1
                assert await made.put("hot", b"%d" % number) == number

        async def read():
            try:
                for _ in range(60):
                    revision = (await made.status()).last_revision
                    try:
                        found = values(await made.at(revision))
                    except PastNotHeld:
                        outcomes.add(False)
                        continue
                    outcomes.add(True)
                    expected = {"a": b"1", "b": b"1"}
                    if revision > 2:
                        expected["hot"] = b"%d" % revision
                    assert found == expected
            finally:
                done.append(True)

        await together(write, read)
        assert outcomes


async def test_a_stream_that_accepts_no_further_consumer(opened, name):
    """Then the revisions are read with their values."""
    async with opened() as jet:
        stream = await jet.create_stream(
            StreamConfig(
                name=f"KV_{name}",
                subjects=[f"$KV.{name}.>"],
                max_msgs_per_subject=2,
                max_consumers=1,
                deny_delete=True,
                allow_direct=True,
                storage="memory",
            )
        )
        await stream.create_consumer(ConsumerConfig(durable_name="only"))
        made = await jet.get_key_value(name)
        await written(made, "a=1", "h=1", "h=2", "h=3")
        assert await held(made, 4) == [1, 3, 4]


async def test_many_keys_and_revisions(opened, name):
    """More keys than one response contains, with gaps, so that all pages are read."""
    async with opened() as jet:
        made = await bucket(jet, name, history=3, storage="file")
        items = [(f"k.{number}", b"%d" % number) for number in range(3000)]
        async for outcome in made.put_many(items):
            assert isinstance(outcome, js.PubAck)
        for number in range(5):
            await made.put("hot", b"%d" % number)
        async for outcome in made.put_many([(key, b"new") for key, _ in items[:100]]):
            assert isinstance(outcome, js.PubAck)
        assert values(await made.at(3000)) == dict(items)
        with pytest.raises(PastNotHeld):
            await made.at(3002)
        assert values(await made.at(3004)) == {**dict(items), "hot": b"3"}
        changes = await made.diff(3003)
        assert [(each.before.value, each.after.value) for each in changes.changed[:1]] == [
            (b"2", b"4")
        ]


# ---- differences


async def test_the_changes_between_two_moments(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "gone=1", "same=1", "changed=1", "back=1", "was")
        await written(made, "gone", "changed=2", "same=1", "new=1", "back", "back=1", "was=1")
        changes = await made.diff(5)
        assert (changes.bucket, changes.revisions) == (name, (5, 12))
        assert {key: each.kind.value for key, each in changes.items()} == {
            "changed": "changed",
            "gone": "deleted",
            "new": "added",
            "was": "added",
        }
        (gone,) = changes.deleted
        assert (gone.before.revision, gone.after.revision, gone.after.is_value) == (1, 6, False)
        (changed,) = changes.changed
        assert (changed.before.value, changed.after.value) == (b"1", b"2")
        was = changes["was"]
        assert (was.before.is_value, was.after.value) == (False, b"1")
        assert changes["new"].before is None
        assert len(await made.diff(5, 5)) == 0
        with pytest.raises(js.BadArgument, match=r"revision 12, is later .* revision 5: swap them"):
            await made.diff(12, 5)
        assert list(await made.diff(5, keys=["new", "none"])) == ["new"]
        first = (await made.history("same"))[0].created
        assert set(await made.diff(first, 3)) == {"changed"}


async def test_a_difference_to_now_needs_only_the_first_state(opened, name):
    """The present state is always whole."""
    async with opened() as jet:
        made = await bucket(jet, name, history=1)
        await written(made, "a=1", "b=1", "a=2", "b=2")
        with pytest.raises(PastNotHeld, match=r"revision 4\) on"):
            await made.diff(2)
        assert len(await made.diff(4)) == 0
        with pytest.raises(PastNotHeld):
            await made.diff(3, 4)


async def test_values_with_codecs(opened, name):
    async with opened() as jet:
        made = (await bucket(jet, name, history=5)).typed(dict[str, int])
        await made.put("a", {"x": 1})
        await made.put("a", {"x": 2})
        assert (await made.at(1))["a"].value == {"x": 1}
        (change,) = (await made.diff(1)).changed
        assert (change.before.value, change.after.value) == ({"x": 1}, {"x": 2})
        assert {key: entry.value for key, entry in (await made.at(2)).items()} == {"a": {"x": 2}}


# ---- undoing changes


async def atomic(jet, made):
    stream = jet.bind_stream(made.stream_name)
    await stream.change(lambda config: evolve(config, allow_atomic=True))


@pytest.mark.since("2.12")
async def test_changes_are_undone_together(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await atomic(jet, made)
        await written(made, "gone=1", "changed=1", "same=1", "purged=1", "gone", "changed=2")
        await written(made, "new=1")
        changes = await made.diff(4)
        assert await made.revert(changes) == []
        assert values(await made.get_many()) == values(await made.at(4))
        assert (await made.get("gone")).value == b"1"
        assert (await made.entry("new")).operation is KeyValueOperation.DELETE
        found = jet.bind_stream(made.stream_name).read(start=8)
        ids = {message.headers["Nats-Batch-Id"] async for message in found}
        assert len(ids) == 1
        # The changes were undone, so their revisions are no longer the present ones.
        last = (await made.status()).last_revision
        with pytest.raises(js.WrongLastSequence) as refused:
            await made.revert(changes)
        assert "none of the 3 changes was undone" in refused.value.__notes__[0]
        assert (await made.status()).last_revision == last


@pytest.mark.since("2.12")
@pytest.mark.parametrize("is_atomic", [True, False])
async def test_what_was_written_in_between_is_not_overwritten(opened, name, is_atomic):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        if is_atomic:
            await atomic(jet, made)
        await written(made, "a=1", "b=1", "a=2", "b=2", "c=1")
        changes = await made.diff(2)
        await made.put("b", b"3")
        left = await made.revert(changes, in_parts=True)
        now = values(await made.get_many())
        if is_atomic:
            assert [each.key for each in left] == ["a", "b", "c"]
            assert now == {"a": b"2", "b": b"3", "c": b"1"}
        else:
            assert [each.key for each in left] == ["b"]
            assert now == {"a": b"1", "b": b"3"}


@pytest.mark.since("2.12")
async def test_changes_are_undone_through_a_mirror(opened, name):
    """The origin of the mirror is written, and decides whether a batch is possible."""
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await atomic(jet, made)
        config = KeyValueConfig(
            bucket=f"{name}-copy", history=10, mirror=StreamSource(name=name), storage="memory"
        )
        copy = await jet.create_key_value(config)
        await written(made, "a=1", "b=1", "a=2", "b", "c=1")

        async def copied():
            return (await copy.status()).last_revision == (await made.status()).last_revision

        await eventually(copied)
        assert await copy.revert(await copy.diff(2)) == []
        assert values(await made.get_many()) == {"a": b"1", "b": b"1"}
        await eventually(copied)
        assert values(await copy.get_many()) == {"a": b"1", "b": b"1"}


async def test_without_atomic_batches_several_changes_are_undone_in_parts_only(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1", "a=2", "b=2")
        changes = await made.diff(2)
        with pytest.raises(UnsuitableSettings, match=r"allow_atomic .* in_parts=True"):
            await made.revert(changes)
        assert await made.revert(await made.diff(2, keys="a")) == []
        assert values(await made.get_many()) == {"a": b"1", "b": b"2"}
        assert await made.revert(await made.diff(2), in_parts=True) == []
        assert values(await made.get_many()) == {"a": b"1", "b": b"1"}
        assert await made.revert(await made.diff(2)) == []


async def test_a_value_without_a_marker_is_stored_again(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1", "a")
        changes = await made.diff(2)
        await made.purge_deletes(older_than=0)
        with pytest.raises(js.RevisionMismatch):
            await made.revert(changes)
        change = changes["a"]
        gone = KeyChanges(name, (2, 3), {"a": KeyChange("a", change.before, None)})
        assert await made.revert(gone) == []
        assert (await made.get("a")).value == b"1"
        with pytest.raises(js.RevisionMismatch):
            await made.revert(gone)


async def test_a_key_that_was_created_and_deleted_since_is_left(opened, name):
    """Its marker is newer than the changes."""
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", "b=1", "a", "b=2")
        changes = await made.diff(2)
        changed = {**changes, "a": KeyChange("a", changes["a"].before, None)}
        left = await made.revert(KeyChanges(name, (2, 4), changed), in_parts=True)
        assert [each.key for each in left] == ["a"]
        assert values(await made.get_many()) == {"b": b"1"}


@pytest.mark.since("2.12")
@pytest.mark.parametrize("is_atomic", [True, False])
async def test_a_value_gets_its_own_headers_back(opened, name, is_atomic):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        if is_atomic:
            await atomic(jet, made)
        headers = {"Kind": "x", "KV-Operation": "PUT"}
        for key in "ab":
            await jet.publish(f"$KV.{name}.{key}", b"1", headers={**headers, "Nats-Msg-Id": key})
        await written(made, "a=2", "b")
        assert await made.revert(await made.diff(2), in_parts=True) == []
        for key in "ab":
            entry = await made.get(key)
            assert (entry.value, entry.headers["Kind"]) == (b"1", "x")
            assert "KV-Operation" not in entry.headers
            assert entry.headers.get("Nats-Msg-Id") != key


async def test_an_error_says_how_many_changes_were_undone(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await written(made, "a=1", f"b={'1' * 500}", "c=1", "a=2", "b=2", "c=2")
        changes = await made.diff(3)
        # The old value of `b` does not fit any more.
        stream = await jet.get_stream(made.stream_name)
        await stream.change(lambda config: evolve(config, max_msg_size=400))
        with pytest.raises(js.TwinstreamError) as failed:
            await made.revert(changes, in_parts=True)
        assert "1 of 3 changes were undone; the next is key 'b'" in failed.value.__notes__
        assert values(await made.get_many()) == {"a": b"1", "b": b"2", "c": b"2"}


@pytest.mark.since("2.12")
async def test_the_error_of_a_batch_says_how_many_changes_were_undone(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await atomic(jet, made)
        await written(made, f"a={'1' * 500}", "b=1", "a=2", "b=2")
        changes = await made.diff(2)
        stream = await jet.get_stream(made.stream_name)
        await stream.change(lambda config: evolve(config, max_msg_size=400))
        with pytest.raises(js.TwinstreamError) as failed:
            await made.revert(changes)
        (note,) = failed.value.__notes__
        assert note.startswith("0 of 2 changes were undone; ")
        assert "the batch from key 'a' on" in note


async def test_changes_of_another_bucket_are_not_undone(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        for wrong in (KeyChanges("other", (1, 2), {}), {}, None):
            with pytest.raises(js.BadArgument):
                await made.revert(wrong)


@pytest.mark.since("2.12")
async def test_more_changes_than_one_batch_takes(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=10)
        await atomic(jet, made)
        items = [(f"k.{number}", b"1") for number in range(1500)]
        await made.put("first", b"1")
        async for outcome in made.put_many(items):
            assert isinstance(outcome, js.PubAck)
        changes = await made.diff(1)
        with pytest.raises(js.BadArgument, match="1500 changes do not fit"):
            await made.revert(changes)
        assert await made.revert(changes, in_parts=True) == []
        assert values(await made.get_many()) == {"first": b"1"}
