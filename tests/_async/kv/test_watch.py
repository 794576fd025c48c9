"""Watching and listing keys: each revision once, in order and complete, despite failures."""

from __future__ import annotations

import math
from functools import partial
from itertools import chain

import pytest

import js_async as js
from tests._async.buckets import bucket, listed, renewed, state, summary
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, together
from tests._async.leaders import step_down
from tests._async.scripted import scripted
from tests.conftest import VERSION
from tests.fake.ordering import create, deliver, leave
from tests.inside import api_of, session_of
from twinstream.models import KeyValueConfig
from twinstream.testing import FakePeer

HISTORIES = pytest.mark.parametrize("history", [1, 5])


async def consumers(jet, made):
    """Return the names of the consumers of a bucket."""
    return [each async for each in jet.bind_stream(made.stream_name).consumer_names()]


@HISTORIES
async def test_a_watch_is_where_it_was_read_to(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for number in range(20):
            await made.put(f"k{number}", b"1")
        async with made.watch() as watch:
            for number in range(1, 8):
                assert (await watch.next(timeout=20)).revision == number
                # Whatever is buffered: a watch that resumes from here misses nothing.
                assert watch.revision == number

            async def arrived():
                return watch.buffered == 13

            await eventually(arrived)
            await watch.close()
            assert watch.buffered == 0
            with pytest.raises(js.IterationEnded):
                await watch.next(timeout=1)
            assert [entry async for entry in watch] == []
        async with made.watch(resume_from=8) as watch:
            assert [(await watch.next(timeout=20)).revision for _ in range(13)] == list(
                range(8, 21)
            )
            assert watch.is_current


async def test_a_consumer_that_is_lost_in_the_middle_repeats_nothing(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        async for outcome in jet.publish_many((f"$KV.{name}.k{each}", b"") for each in range(2000)):
            assert not isinstance(outcome, js.PublishFailure)
        seen = []
        async with made.watch() as watch:
            async for entry in watch.initial():
                seen.append(entry.revision)
                if entry.revision in {1, 300, 900, 1999}:
                    for consumer in await consumers(jet, made):
                        await jet.delete_consumer(made.stream_name, consumer)
        assert seen == list(range(1, 2001))


@HISTORIES
async def test_a_watch_gives_the_state_then_each_change(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for key in ("a", "b", "c", "b"):
            await made.put(key, b"1")
        await made.delete("c")
        async with made.watch() as watch:
            assert not watch.is_current
            assert await state(watch) == [
                ("a", "put", b"1"),
                ("b", "put", b"1"),
                ("c", "delete", None),
            ]
            assert watch.is_current
            await made.put("a", b"2")
            await made.purge("b")
            assert summary(await watch.next(timeout=20)) == ("a", "put", b"2")
            entry = await watch.next(timeout=20)
            assert (summary(entry), entry.revision) == (("b", "purge", None), 7)
            assert watch.revision == 7
            assert await watch.next(timeout=0.05) is None
        assert watch.is_ended
        with pytest.raises(js.IterationEnded):
            await watch.next(timeout=1)
        assert await consumers(jet, made) == []


@HISTORIES
async def test_end_of_an_empty_state_is_reported(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        async with made.watch() as watch:
            assert await state(watch) == []
        for number in range(20):
            await made.put(f"a.{number}", b"")
        async with made.watch("none.*") as watch:
            assert await state(watch) == []
        async with made.watch(updates_only=True) as watch:
            assert watch.is_current
            assert await state(watch) == []
        async with made.watch([]) as watch:
            assert await state(watch) == []
            assert await watch.next(timeout=0.05) is None
        for number in range(20):
            await made.delete(f"a.{number}")
        async with made.watch(deletes=False) as watch:
            assert await state(watch) == []
        assert await listed(made.keys()) == []
        for number in range(20):
            await jet.bind_stream(made.stream_name).purge(subject=f"$KV.{name}.a.{number}")
        async with made.watch() as watch:
            assert await state(watch) == []
            await made.put("a.1", b"")
            assert summary(await watch.next(timeout=20)) == ("a.1", "put", b"")


async def test_what_a_watch_delivers_can_be_chosen(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name, history=5)
        for number in range(3):
            await made.put("a", b"%d" % number)
        await made.put("b", b"12345")
        await made.delete("a")
        async with made.watch(history=True) as watch:
            assert [each[1] for each in await state(watch)] == ["put"] * 4 + ["delete"]
        async with made.watch(resume_from=3) as watch:
            assert [each[0] for each in await state(watch)] == ["a", "b", "a"]
        async with made.watch(resume_from=6) as watch:
            assert await state(watch) == []
            await made.put("c", b"")
            assert (await watch.next(timeout=20)).revision == 6
        with pytest.raises(js.BadArgument, match=r"resume_from is 8, bucket .* is at 6"):
            await made.watch(resume_from=8)
        async with made.watch(updates_only=True, deletes=False) as watch:
            await made.delete("c")
            await made.put("d", b"")
            assert (await watch.next(timeout=20)).key == "d"
        async with made.watch("b", meta_only=True) as watch:
            entry = await watch.next(timeout=20)
            assert (entry.key, entry.value, entry.size) == ("b", None, 5)
        async with made.watch(["a", "b", "a", "*"]) as watch:
            assert len(await state(watch)) == 4
        assert await consumers(jet, made) == []


@pytest.mark.parametrize("stated", ["70", "many", "9" * 309])
async def test_a_publisher_does_not_decide_the_size_of_a_value(opened, name, stated):
    async with opened() as jet:
        made = await bucket(jet, name)
        await jet.publish(f"$KV.{name}.b", b"hello", headers={"Nats-Msg-Size": stated})
        async with made.watch("b", meta_only=True) as watch:
            assert (await watch.next(timeout=20)).size == 5
        async with made.watch("b") as watch:
            assert (await watch.next(timeout=20)).size == 5


async def test_choices_that_exclude_each_other(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for options in (
            {"history": True, "updates_only": True},
            {"history": True, "resume_from": 1},
            {"updates_only": True, "resume_from": 1},
        ):
            with pytest.raises(js.BadArgument, match="exclude each other"):
                made.watch(**options)
        with pytest.raises(js.BadArgument, match="a revision"):
            made.watch(resume_from=0)
        for pattern in ("a*", ">.a", "a b", ""):
            with pytest.raises(js.InvalidKey):
                made.watch(pattern)
            with pytest.raises(js.InvalidKey):
                made.keys(pattern)


async def test_the_initial_values_can_be_iterated_over(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for key in "abc":
            await made.put(key, b"")
        async with made.watch() as watch:
            assert [each.key async for each in watch.initial()] == ["a", "b", "c"]
            assert [each.key async for each in watch.initial()] == []
        async with made.watch() as watch:

            async def initial():
                return [each.key async for each in watch.initial()]

            # Callers that wait for another initial value end with the last one.
            found = await together(*[initial] * 3)
            assert sorted(chain.from_iterable(found)) == ["a", "b", "c"]
            await made.put("d", b"")
            async for entry in watch:
                assert entry.key == "d"
                break


@HISTORIES
async def test_lost_consumers_lose_nothing_and_repeat_nothing(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for number in range(300):
            await made.put(f"k.{number}", b"")
        reports = []
        async with made.watch(on_report=reports.append) as watch:
            seen = []
            for _ in range(3):
                seen += [(await watch.next(timeout=20)).revision for _ in range(60)]
                for consumer in await consumers(jet, made):
                    await jet.bind_stream(made.stream_name).delete_consumer(consumer)
            seen += [entry.revision async for entry in watch.initial()]
            assert seen == list(range(1, 301))
            for consumer in await consumers(jet, made):
                await jet.bind_stream(made.stream_name).delete_consumer(consumer)
            for number in range(5):
                await made.put("k.1", b"%d" % number)
            revisions = [(await watch.next(timeout=20)).revision]
            while revisions[-1] != 305:
                revisions.append((await watch.next(timeout=20)).revision)
            # With a history nothing is skipped; without one, only what was overwritten.
            assert revisions == sorted(set(revisions))
            if history > 1:
                assert revisions == list(range(301, 306))
        assert reports
        assert await consumers(jet, made) == []


async def test_watch_continues_after_a_restart_of_the_server(server_factory, name):
    running = server_factory()
    async with js.connect(running.url) as connection:
        made = await bucket(connection.jetstream(timeout=20), name, storage="file")
        await made.put("a", b"1")
        async with made.watch() as watch:
            assert await state(watch) == [("a", "put", b"1")]
            running.kill()
            running.restart()

            async def put():
                try:
                    return await made.put("b", b"2")
                except js.TwinstreamError:
                    return None

            revision = await eventually(put)
            entry = await watch.next(timeout=30)
            while entry.revision < revision:
                entry = await watch.next(timeout=30)
            assert (entry.key, entry.revision) == ("b", revision)


async def test_deleted_and_recreated_bucket(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        await made.put("b", b"1")
        async with made.watch() as watch:
            assert len(await state(watch)) == 2
            await jet.delete_key_value(name)
            with pytest.raises(js.BucketNotFound):
                await watch.next(timeout=30)
            again = await bucket(jet, name)
            await again.put("c", b"new")
            assert await renewed(watch, 2) == [("c", 1)]
            await again.put("d", b"new")
            assert summary(await watch.next(timeout=20)) == ("d", "put", b"new")


async def test_an_unread_watch_closes_at_once(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        requests = (js.PublishRequest(f"$KV.{name}.{n}", b"x" * 100) for n in range(5000))
        async for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure)
        watch = await made.watch()
        await watch.next(timeout=20)

        async def take():
            return [each async for each in watch]

        await together(watch.close, take)
        assert await consumers(jet, made) == []


@HISTORIES
async def test_removed_keys_do_not_stop_a_list(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for number in range(300):
            await made.put(f"k.{number}", b"x" * 1000)
        async with made.watch() as watch:
            await watch.next(timeout=20)
            for number in (250, 270, 290):
                await jet.bind_stream(made.stream_name).purge(subject=f"$KV.{name}.k.{number}")
            rest = await state(watch)
            assert len({each[0] for each in rest}) in range(296, 300)


async def test_revisions_that_were_lost_among_others_come_again():
    """The watch takes all revisions at once that have arrived."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        create(peer, stream="KV_B")
        pull = peer.expect_pull()
        for sent, revision in ((1, 11), (2, 12), (4, 14), (5, 15)):
            deliver(peer, pull, sent, revision, f"$KV.B.k{revision}")
        config = create(peer, stream="KV_B")
        assert config["opt_start_seq"] == 13
        pull = peer.expect_pull()
        for sent in (1, 2, 3):
            deliver(peer, pull, sent, 12 + sent, f"$KV.B.k{12 + sent}")
        leave(peer, config["name"])

    async with scripted(script) as connection:
        made = connection.jetstream(timeout=20).bind_key_value("B")
        async with made.watch(updates_only=True) as watch:
            seen = [(await watch.next(timeout=20)).revision for _ in range(5)]
        assert seen == [11, 12, 13, 14, 15]


# ---- keys


@HISTORIES
async def test_keys_are_those_with_a_value(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for number in range(10):
            await made.put(f"a.{number}", b"x")
            await made.put(f"b.{number}.c", b"x")
        for number in range(0, 10, 2):
            await made.delete(f"a.{number}")
        await made.purge("b.3.c")
        odd = [f"a.{number}" for number in range(1, 10, 2)]
        assert await listed(made.keys("a.*")) == odd
        assert await listed(made.keys(["a.1", "a.2", "a.3"])) == ["a.1", "a.3"]
        assert len(await listed(made.keys("b.>"))) == 9
        assert len(await listed(made.keys(["*.*.c", "a.*"]))) == 14
        assert len(await listed(made.keys())) == 14
        assert await listed(made.keys("none.>")) == []
        assert await consumers(jet, made) == []


@HISTORIES
async def test_no_key_is_missing_or_twice_while_others_write(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        names = [f"k.{number}" for number in range(400)]
        for key in names:
            await made.put(key, b"0")
        await made.delete("k.7")
        living = sorted(set(names) - {"k.7"})
        over = []

        async def write():
            number = 0
            while not over:
                number += 1
                await made.put(living[number * 7 % len(living)], b"%d" % number)

        async def read():
            try:
                for _ in range(5):
                    assert await listed(made.keys()) == living
            finally:
                over.append(True)

        await together(write, read)


async def test_a_watch_of_many_keys(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for number in range(30):
            await made.put(f"k.{number}", b"")
        # Servers before 2.12 take half a minute to compare 2,000 filters with each other.
        count = 2000 if VERSION is None else 200
        chosen = [f"k.{number}" for number in range(count)]
        assert len(await listed(made.keys(chosen))) == 30


# ---- dropping markers


async def test_markers_are_dropped_and_newer_values_stay(opened, name):
    async with opened() as jet:

        async def late():
            await made.put("back", b"2")

        transport = Disturbed(api_of(jet).transport, r"STREAM\.PURGE.*\.back", before=late)
        made = await bucket(transport.jetstream(timeout=20), name, history=5)
        for key in ("gone", "back", "kept"):
            await made.put(key, b"1")
        await made.delete("gone")
        await made.delete("back")
        done = await made.purge_deletes(older_than=0)
        assert (done.removed, done.kept) == (2, 0)
        assert (await made.get("back")).value == b"2"
        assert await made.entry("gone") is None
        assert await listed(made.keys()) == ["back", "kept"]
        await made.delete("kept")
        done = await made.purge_deletes(older_than=math.inf)
        assert (done.removed, done.kept > 0) == (0, True)
        done = await made.purge_deletes()
        assert (done.removed, done.kept) == (0, 1)
        assert [summary(each) for each in await made.history("kept")] == [("kept", "delete", None)]
        assert await consumers(jet, made) == []


@pytest.mark.parametrize("key", [b">", b"*", b"a.>", b"a.*", b"\xff"])
async def test_a_marker_whose_key_matches_others_removes_nothing(server, name, key):
    # A server stores a message that is published to the subject of a filter.
    async with js.connect(server.url) as connection:
        made = await bucket(connection.jetstream(timeout=20), name)
        for each in ("b", "a.b", "gone"):
            await made.put(each, b"1")
        await made.delete("gone")
        marker = b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"
        await session_of(connection).send(f"$KV.{name}.".encode() + key, b"", marker, b"")
        await connection.flush()
        done = await made.purge_deletes(older_than=0)
        assert (done.removed, done.kept, done.skipped) == (1, 0, 1)
        assert await listed(made.keys()) == ["a.b", "b"]


async def test_markers_of_a_bucket_that_was_re_created_remove_nothing(opened, name):
    async with opened() as jet:

        async def read():
            transport.expect(r"STREAM\.INFO", before=recreated)

        async def recreated():
            await jet.delete_key_value(name)
            new = await bucket(jet, name)
            # The marker of the old bucket has revision 2.
            await new.put("a", b"new")
            await new.put("b", b"new")

        transport = Disturbed(api_of(jet).transport)
        made = await bucket(transport.jetstream(timeout=20), name)
        await made.put("a", b"1")
        await made.delete("a")
        await made.put("b", b"1")
        transport.expect(r"CONSUMER\.DELETE", after=read)
        done = await made.purge_deletes(older_than=0)
        assert (done.removed, done.kept) == (0, 0)
        assert await listed(made.keys()) == ["a", "b"]


@pytest.mark.parametrize("replicas", [3])
async def test_acknowledged_keys_are_delivered_before_the_mark(cluster, name, replicas):
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=20)
        config = KeyValueConfig(bucket=name, storage="memory", num_replicas=replicas)
        made = await jet.create_key_value(config)
        keys = [f"k.{number}" for number in range(60)]
        for key in keys:
            await made.put(key, b"0")
        over = []

        async def write(start):
            number = start
            while not over:
                number += 7
                await made.put(keys[number % len(keys)], b"%d" % number)

        async def read():
            try:
                for number in range(20):
                    new = f"new.{number}"
                    await made.put(new, b"")
                    keys.append(new)
                    async with made.watch(meta_only=True) as watch:
                        found = {each[0] for each in await state(watch)}
                    assert found.issuperset(keys)
            finally:
                over.append(True)

        await together(partial(write, 0), partial(write, 3), read)


async def test_conflicts_of_replicated_writes_are_one_error(cluster, name):
    """While another write of the key is in flight, the server uses another error code."""
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=20)
        config = KeyValueConfig(bucket=name, storage="memory", num_replicas=3)
        made = await jet.create_key_value(config)
        await made.put("n", b"0")
        codes, holders = set(), []

        async def count():
            done = 0
            while done < 15:
                entry = await made.get("n")
                try:
                    await made.update("n", b"%d" % (int(entry.value) + 1), entry.revision)
                    done += 1
                except js.RevisionMismatch as error:
                    codes.add(error.err_code)

        await together(*[count] * 6)
        assert (await made.get("n")).value == b"90"
        assert codes <= {10071, 10164}

        async def own():
            won = 0
            for _ in range(8):
                try:
                    revision = await made.create("lock", b"")
                except js.KeyExists as error:
                    holders.append(error.entry)
                    continue
                won += 1
                await made.delete("lock", revision=revision)
            return won

        assert sum(await together(*[own] * 6)) > 0
        assert all(entry.is_value for entry in holders)
        # A read after a write sees it, whichever replica is asked.
        for number in range(50):
            await made.create(f"new.{number}", b"")
            assert (await made.get(f"new.{number}")).value == b""
            assert (await made.get(f"new.{number}", stale=True)).value == b""


@pytest.mark.parametrize("history", [1, 64])
async def test_watch_continues_while_leaders_change(cluster, name, history):
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=30)
        config = KeyValueConfig(bucket=name, history=history, storage="memory", num_replicas=3)
        made = await jet.create_key_value(config)
        written, over = [], []

        async def write():
            number = 0
            while not over:
                number += 1
                try:
                    written.append(await made.create(f"k.{number}", b"x"))
                except js.KeyExists as error:
                    # Of an attempt that ended without an answer, which is told to be unknown.
                    written.append(error.actual)
                except js.TwinstreamError:
                    number -= 1

        async def disturb():
            try:
                for _ in range(3):
                    start = len(written)

                    async def more(start=start):
                        return len(written) > start + 20

                    await eventually(more, patience=60)
                    await step_down(connection, f"STREAM.LEADER.STEPDOWN.KV_{name}")
            finally:
                over.append(True)

        async with made.watch() as watch:
            assert await state(watch) == []
            await together(write, disturb)
            seen = []
            while not seen or seen[-1] < written[-1]:
                seen.append((await watch.next(timeout=60)).revision)
        # Each once, in order, and none of those that were acknowledged is missing.
        assert seen == sorted(set(seen))
        assert set(written) <= set(seen)


class Unheard:
    """A transport on which a stream's first consumer is deleted and receives no pull request."""

    def __init__(self, transport, stream):
        self._transport = transport
        self._stream = stream
        self._gone = None

    def __getattr__(self, name):
        return getattr(self._transport, name)

    # So that pulls take the way below.
    def write(self, *_):
        return False

    async def send(self, subject, *parts):
        if b"MSG.NEXT" in subject:
            name = subject.decode().rpartition(".")[2]
            if self._gone is None:
                self._gone = name
                await self._stream.delete_consumer(name)
            if name == self._gone:
                return
        await self._transport.send(subject, *parts)


async def test_a_consumer_that_does_not_answer_is_replaced(opened, name):
    """A deleted consumer may neither answer nor be reported as deleted (seen under load)."""
    async with opened() as jet:
        made = await bucket(jet, name)
        for key in "abc":
            await made.put(key, b"")
        unheard = Unheard(api_of(jet).transport, jet.bind_stream(made.stream_name))
        seen = await js.JetStream(unheard, timeout=1).get_key_value(name)
        reports = []
        async with seen.watch(on_report=reports.append) as watch:
            assert [each[0] for each in await state(watch)] == ["a", "b", "c"]
        assert any("did not answer" in report.text for report in reports)
        assert await consumers(jet, made) == []


async def test_keys_of_a_bucket_that_is_recreated_during_the_read(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        requests = (js.PublishRequest(f"$KV.{name}.k.{n}", b"x" * 2000) for n in range(3000))
        async for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js.PublishFailure)
        found, keys = [], made.keys()
        async for key in keys:
            found.append(key)
            if len(found) == 1:
                await jet.delete_key_value(name)
                again = await bucket(jet, name)
                await again.put("k.0", b"")
                await again.put("new", b"")
        # What was there before comes once or never, and what is there now comes once.
        assert len(found) == len(set(found))
        assert {"k.0", "new"} <= set(found)


async def recreated(jet, name, keys, **config):
    """Delete a bucket, create it again with these keys, and return it."""
    await jet.delete_key_value(name)
    made = await bucket(jet, name, **config)
    for key in keys:
        await made.put(key, b"new")
    return made


@HISTORIES
async def test_keys_of_a_bucket_that_is_recreated_before_the_end_is_decided(opened, name, history):
    """All keys of the old bucket were received, and its revisions are above those of the new."""
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for number in range(5):
            await made.put(f"k{number}", b"")
        found, keys = [], made.keys()
        async for key in keys:
            found.append(key)
            if len(found) == 5:
                await recreated(jet, name, ["k0", "new"], history=history)
        assert found == ["k0", "k1", "k2", "k3", "k4", "new"]


@HISTORIES
async def test_keys_that_were_written_to_a_bucket_that_is_gone_are_not_returned(
    opened, name, history
):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        await made.put("k0", b"")
        found, keys = [], made.keys()
        async for key in keys:
            found.append(key)
            if key == "k0":
                await made.put("gone", b"")
                await recreated(jet, name, [], history=history)
        assert found == ["k0"]


@HISTORIES
async def test_initial_values_are_not_those_of_a_bucket_that_is_gone(opened, name, history):
    async with opened() as jet:
        made = await bucket(jet, name, history=history)
        for number in range(5):
            await made.put(f"k{number}", b"")
        async with made.watch() as watch:
            assert [(await watch.next(timeout=20)).revision for _ in range(5)] == [1, 2, 3, 4, 5]
            assert watch.is_current
            await recreated(jet, name, ["k0", "new"], history=history)
            assert await renewed(watch, 2) == [("k0", 1), ("new", 2)]
            assert (watch.generation, watch.is_current, watch.revision) == (2, True, 2)


@pytest.mark.parametrize("updates_only", [False, True])
async def test_a_recreated_bucket_is_current_without_an_entry(opened, name, updates_only):
    async with opened() as jet:
        made = await bucket(jet, name)
        async with made.watch(updates_only=updates_only) as watch:
            assert await state(watch) == []
            again = await recreated(jet, name, [])
            assert await renewed(watch, 2) == []
            await again.put("k", b"")
            assert (await watch.next(timeout=20)).key == "k"


async def test_the_last_initial_value_shows_that_it_is_the_last(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        for key in "abc":
            await made.put(key, b"")
        async with made.watch() as watch:
            found = []
            async for entry in watch:
                found.append((entry.key, watch.is_current))
                if watch.is_current:
                    break
            assert found == [("a", False), ("b", False), ("c", True)]
            again = await recreated(jet, name, "de")
            found = [(await watch.next(timeout=20)).key, watch.is_current]
            assert found == ["d", False]
            found = [(await watch.next(timeout=20)).key, watch.is_current]
            assert found == ["e", True]
            await again.put("f", b"")
            assert (await watch.next(timeout=20)).key == "f"


async def test_an_initial_value_is_not_held_back_beyond_the_timeout(opened, name):
    """A call without time cannot ask whether a value is the last one."""
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        async with made.watch() as watch:

            async def taken():
                return await watch.next(timeout=0)

            assert (await eventually(taken)).key == "a"
            assert [each async for each in watch.initial()] == []
            assert watch.is_current


@pytest.mark.parametrize("options", [{}, {"updates_only": True}])
async def test_revisions_between_two_calls_are_delivered(opened, name, options):
    """Each revision replaces the one before, which the server has delivered by then."""
    async with opened() as jet:
        made = await bucket(jet, name)
        async with made.watch(**options) as watch:
            assert await state(watch) == []
            for number in range(1, 5):
                assert await made.put("a", b"%d" % number) == number

                async def arrived(count=number):
                    return watch.buffered >= count

                await eventually(arrived)
            found = [(await watch.next(timeout=20)).revision for _ in range(4)]
            assert found == [1, 2, 3, 4]


async def test_updates_before_the_first_call_are_delivered(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        async with made.watch(updates_only=True) as watch:
            for number in range(1, 3):
                await made.put("a", b"%d" % number)

                async def arrived(count=number):
                    return watch.buffered >= count

                await eventually(arrived)
            assert [(await watch.next(timeout=20)).revision for _ in range(2)] == [1, 2]


async def test_a_watch_returns_none_after_its_timeout(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        async with made.watch() as watch:
            for timeout in (0, 0.2):
                assert await watch.next(timeout=timeout) is None


async def test_a_timeout_of_a_list_names_the_bucket_and_no_request(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        with pytest.raises(js.RequestTimeout) as caught:
            await listed(made.keys(idle_timeout=0))
        assert str(caught.value).startswith(f"bucket {name}: no ")
        assert "STREAM.INFO" not in str(caught.value)
