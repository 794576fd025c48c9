"""Selections by subjects, keys or kinds. An empty list, which a program computed, is no `all`."""

from __future__ import annotations

import pytest

from js_async.counters import Counters
from js_async.schedules import Schedule, Schedules
from tests._async.buckets import bucket, listed
from tests._async.streams import filled
from twinstream.models import StreamConfig, evolve


@pytest.mark.parametrize("via", [None, "direct", "consumer", "leader"])
async def test_a_read_of_no_subjects_is_complete_and_has_no_messages(opened, name, via):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        await stream.change(lambda config: evolve(config, allow_direct=True))
        async with stream.read(subjects=[], via=via) as read:
            assert [message async for message in read] == []
        assert (read.report.messages, read.report.position) == (0, 4)


async def test_a_read_of_several_subjects_takes_them_from_any_iterable(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        for each in "abc":
            await jet.publish(f"{name}.{each}")
        async with stream.read(subjects=(f"{name}.{each}" for each in "ac")) as read:
            assert [message.seq async for message in read] == [1, 3]
        async with stream.ordered(subjects={f"{name}.b"}, stop_after=1) as messages:
            assert [message.seq async for message in messages] == [2]


@pytest.mark.parametrize("policy", [None, "new", "last_per_subject"])
async def test_ordered_messages_of_no_subjects_never_come(opened, name, policy):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        async with stream.ordered(subjects=[], deliver_policy=policy) as messages:
            assert await messages.next(timeout=0.3) is None
            await jet.publish(f"{name}.new")
            assert await messages.next(timeout=0.3) is None


async def test_a_snapshot_of_no_subjects_is_empty(opened, name):
    async with opened() as jet:
        for direct in (True, False):
            stream = await filled(jet, f"{name}{direct}", 3)
            await stream.change(lambda config, to=direct: evolve(config, allow_direct=to))
            snapshot = await stream.snapshot([])
            assert (dict(snapshot), snapshot.seq) == ({}, 3)


@pytest.mark.since("2.12")
async def test_a_list_of_no_counters_is_empty(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_msg_counter=True)
        await jet.create_stream(config)
        counters = Counters(jet, name)
        await counters.add(f"{name}.a", 3)
        assert await listed(counters.list([])) == []
        assert len(await listed(counters.list())) == 1


@pytest.mark.since("2.12")
async def test_a_list_of_no_schedules_is_empty(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_msg_schedules=True)
        await jet.create_stream(config)
        schedules = Schedules(jet, name)
        await schedules.add(f"{name}.plan", Schedule.every(3600), f"{name}.out")
        assert await listed(schedules.list([])) == []
        assert len(await listed(schedules.list())) == 1


async def test_events_of_no_kinds_never_come(opened, name):
    async with opened() as jet:
        async with jet.events(kinds=[]) as none, jet.events(stream_name=name) as events:
            await filled(jet, name, 0)
            assert await events.next(timeout=30) is not None
            assert await none.next(timeout=0.3) is None


async def test_no_keys_are_watched_and_none_removed(opened, name):
    async with opened() as jet:
        made = await bucket(jet, name)
        await made.put("a", b"1")
        async with made.watch([]) as watch:
            assert await listed(watch.initial()) == []
            await made.put("a", b"2")
            assert await watch.next(timeout=0.3) is None
        assert await made.delete_many([]) == 0
        assert (await made.get("a")).value == b"2"
