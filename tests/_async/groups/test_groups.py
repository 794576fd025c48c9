"""Partitioned consumer groups: standby instances, changes of members, and how workers end."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest
from attrs import evolve

import js_async as js
from js_async.groups import (
    ElasticGroup,
    GroupChanged,
    GroupExists,
    GroupNotFound,
    InvalidGroupConfig,
    JoinDelayed,
    PartitionsRevoked,
    StaticGroup,
    elastic_groups,
    static_groups,
)
from js_async.health import check_health
from js_async.workers import DeadLetters, Reject, Retry
from tests._async.flow import eventually, pause, together
from tests._async.members import (
    CALM,
    QUICK,
    STRICT,
    Members,
    Seen,
    consumed,
    elastic,
    has,
    publish,
    static,
)
from tests._async.progress import reports_of
from tests.hooked import hooked
from tests.stalls import attempts
from twinstream.core.groups.member_consumer import PRIORITY_GROUP, pin_holder
from twinstream.errors import UnsuitableSettings
from twinstream.models import (
    ConsumerConfig,
    ElasticGroupConfig,
    KeyValueConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
    StreamConfig,
    encode,
)
from twinstream.testing import Proxy


async def pinned(reports):
    return any(isinstance(each, js.Pinned) for each in reports)


# ---- order


async def unacknowledged(consumer):
    info = await consumer.info()
    return info.num_ack_pending == 1 and info.num_pending == 0


async def test_a_delivery_that_was_lost_with_a_connection_keeps_its_place(server, name):
    seen = Seen(name)
    # All of one key, so that the order is that of the numbers.
    subject = f"{name}.{Seen.key(0)}"
    with Proxy(server.url) as proxy:
        async with js.connect(server.url) as connection, Members() as members:
            jet = connection.jetstream(timeout=60)
            await elastic(jet, name, "m1")
            reconnect = js.ReconnectPolicy(wait=0.01, max_wait=0.01, attempts=-1)
            member = await members.start(proxy, name, "m1", seen, QUICK, reconnect=reconnect)
            await jet.publish(subject, b"0")
            await consumed(seen, 1)
            consumer = await jet.get_consumer(f"{name}-g", "m1")

            async def is_idle():
                return (await consumer.info()).num_ack_pending == 0

            await eventually(is_idle)
            proxy.mute = True
            await jet.publish(subject, b"1")
            await eventually(unacknowledged, consumer)
            proxy.mute = False
            proxy.cut()
            # Delivered before the server redelivers the lost message.
            for number in (b"2", b"3"):
                await jet.publish(subject, number)
            await consumed(seen, 4)
            assert [number for _, number in seen.finished] == [0, 1, 2, 3]
            await member.stop()


# ---- standby instances


@pytest.mark.parametrize("way", ["stop", "kill", "step down"])
@pytest.mark.parametrize("kind", ["elastic", "static"])
async def test_a_standby_instance_takes_over(server, name, kind, way):
    # The server keeps the pin of an instance that was killed for ack_wait.
    config = STRICT if way == "kill" else evolve(STRICT, ack_wait=CALM.ack_wait)
    for number, attempt in enumerate(attempts(config.ack_wait.total_seconds())):
        with attempt:
            await take_over(server, f"{name}-{number}", kind, way, config)


async def take_over(server, name, kind, way, config):
    seen = Seen(name)
    async with js.connect(server.url) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        group = await (elastic if kind == "elastic" else static)(jet, name, "m1")
        first = await members.start(server, name, "m1", seen, config, kind)
        await publish(jet, name, 0, 10)
        await consumed(seen, 10)
        second = await members.start(server, name, "m1", seen, config, kind)
        assert second.worker.partitions == tuple(range(10))
        await publish(jet, name, 10, 20)
        await consumed(seen, 20)
        assert not await pinned(second.reports)
        if way == "stop":
            await first.stop()
        elif way == "kill":
            await first.kill()
        else:
            await group.step_down("m1")
        await publish(jet, name, 20, 30)
        await consumed(seen, 30)
        if way != "step down":
            await eventually(pinned, second.reports)
        seen.check(30, strict=True)
        assert await group.active_members() == ["m1"]
        if way == "step down":
            await first.stop()
            await publish(jet, name, 30, 40)
            await consumed(seen, 40)
        await second.stop()


@pytest.mark.parametrize("kind", ["elastic", "static"])
async def test_the_only_instance_is_pinned_again_at_once(server, name, kind):
    seen, config = Seen(name), ConsumerConfig(ack_wait=timedelta(seconds=300))
    async with js.connect(server.url) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        group = await (elastic if kind == "elastic" else static)(jet, name, "m1")
        only = await members.start(server, name, "m1", seen, config, kind)
        await publish(jet, name, 0, 10)
        await consumed(seen, 10)
        await group.step_down("m1")
        await publish(jet, name, 10, 20)
        # The server keeps the pin of an inbox that is closed for ack_wait.
        await consumed(seen, 20, patience=200)
        await only.stop()


async def test_a_late_worker_leaves_the_consumer_of_a_new_group_alone(server, name):
    old, new = Seen(name, patience=2), Seen(name)
    async with js.connect(server.url) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        group = await static(jet, name, "m1")
        first = await members.start(server, name, "m1", old, kind="static")
        old.hold()
        await publish(jet, name, 0, 1)
        consumer = await (await jet.get_stream(group.source_stream_name)).get_consumer("g-m1")
        await eventually(has_pending, consumer, 1)
        await group.delete()
        await group.create(StaticGroupConfig(max_members=10, members=["m1"]))
        second = await members.start(server, name, "m1", new, kind="static")
        old.let_go()
        # It sees the deletion of the key or that of its consumer first.
        with suppress(js.ConsumerDeleted):
            await first.worker.wait(timeout=60)
        await first.connection.close()
        await publish(jet, name, 1, 5)
        await consumed(new, 5)
        await second.stop()


@pytest.mark.parametrize("way", ["stop", "kill", "step down"])
@pytest.mark.parametrize("kind", ["elastic", "static"])
async def test_what_was_in_progress_comes_before_newer_messages(server, name, kind, way):
    seen = Seen(name)
    async with js.connect(server.url) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        group = await (elastic if kind == "elastic" else static)(jet, name, "m1")
        config = QUICK if way == "kill" else CALM
        first = await members.start(server, name, "m1", seen, config, kind)
        second = await members.start(server, name, "m1", seen, config, kind)
        await publish(jet, name, 0, 5)
        await consumed(seen, 5)
        served, other = (first, second) if await pinned(first.reports) else (second, first)
        consumer = await (await jet.get_stream(group.source_stream_name)).get_consumer(
            "m1" if kind == "elastic" else "g-m1"
        )
        # A handler that takes long, with many messages behind it.
        seen.hold()
        await publish(jet, name, 5, 45)
        await eventually(has_pending, consumer, 40)
        if way == "kill":
            await served.connection.close()
            await publish(jet, name, 45, 90)
            seen.let_go(js.ConnectionClosed("killed"))
            await served.kill()
        elif way == "step down":
            await group.step_down("m1")
            await publish(jet, name, 45, 90)
            await eventually(pinned, other.reports)
            seen.let_go()
        else:
            await together(served.stop, partial(release, jet, name, seen))
        await consumed(seen, 90)
        seen.check(90)
        if way != "kill":
            assert seen.again == 0
        for each in (served, other) if way == "step down" else (other,):
            await each.stop()


async def release(jet, name, seen):
    await publish(jet, name, 45, 90)
    seen.let_go()


async def has_pending(consumer, count):
    return (await consumer.info()).num_ack_pending == count


# ---- the end


@pytest.mark.parametrize("kind", ["elastic", "static"])
async def test_the_workers_end_with_their_group(opened, name, kind):
    async with opened() as jet:
        group = await (elastic if kind == "elastic" else static)(jet, name, "m1")
        seen, reports = Seen(name), []
        worker = group.worker("m1", seen.handler("m1"), config=QUICK, on_report=reports.append)
        await worker.start()
        await publish(jet, name, 0, 5)
        await consumed(seen, 5)
        await group.delete()
        await worker.wait(timeout=60)
        assert (worker.partitions, worker.handled) == ((), 5)
        assert isinstance(reports[-1], PartitionsRevoked)
        assert "deleted" in reports[-1].reason
        await worker.stop()
        with pytest.raises(GroupNotFound):
            await group.info()
        with pytest.raises(GroupNotFound):
            await group.delete()
        with pytest.raises(GroupNotFound):
            await group.worker("m1", seen.handler("m1")).start()
        if kind == "static":
            names = [each async for each in (await jet.get_stream(name)).consumer_names()]
            assert names == []
        else:
            with pytest.raises(js.StreamNotFound):
                await jet.get_stream(f"{name}-g")


async def copied(jet, name, count):
    """Return whether the group's stream has the only copies of messages."""
    origin, copy = await jet.get_stream(name), await jet.get_stream(f"{name}-g")
    return (origin.cached_info.state.messages, copy.cached_info.state.messages) == (0, count)


async def copies(jet, name):
    """Return whether the group's stream has begun to copy."""
    return (await jet.get_stream(name)).cached_info.state.consumer_count > 0


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
async def test_a_group_with_the_only_copies_of_messages_is_not_deleted(opened, name, retention):
    async with opened() as jet:
        stream = {"storage": "memory", "retention": retention}
        group = await elastic(jet, name, "m1", stream=stream)
        await eventually(copies, jet, name)
        await publish(jet, name, 0, 10)
        await eventually(copied, jet, name, 10)
        with pytest.raises(
            UnsuitableSettings, match=f"keeps 10 messages .* retention is {retention}"
        ):
            await group.delete()
        assert await copied(jet, name, 10)
        assert (await group.info()).members == ["m1"]
        seen = Seen(name)
        async with group.worker("m1", seen.handler("m1"), config=QUICK):
            await consumed(seen, 10)
        await eventually(copied, jet, name, 0)
        await group.delete()
        with pytest.raises(js.StreamNotFound):
            await jet.get_stream(f"{name}-g")


async def test_messages_that_the_original_stream_keeps_do_not_prevent_a_deletion(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        await publish(jet, name, 0, 10)
        await group.delete()
        assert (await jet.get_stream(name)).cached_info.state.messages == 10


async def fails(jet, name):
    found = (await check_health(jet, stream_name=f"{name}-g", interval=0.01)).findings
    return [each.kind for each in found if each.figures.get("source") == name]


async def test_a_group_says_that_its_original_stream_was_deleted(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        await publish(jet, name, 0, 3)

        async def has_all():
            return (await jet.get_stream(f"{name}-g")).cached_info.state.messages == 3

        await eventually(has_all)
        config = (await group.info()).config
        await jet.delete_stream(name)
        with pytest.raises(js.StreamNotFound, match=f"stream {name}]"):
            await group.create(config)
        with pytest.raises(UnsuitableSettings, match=r"keeps 3 messages .* its state is deleted"):
            await group.delete()
        await eventually(fails, jet, name)
        assert await fails(jet, name) == ["source_failing"]
        await (await jet.get_stream(group.source_stream_name)).purge()
        await group.delete()


@pytest.mark.parametrize("marker", ["purge", "expiry"])
async def test_a_purged_or_expired_key_is_a_deleted_one(server_factory, name, marker):
    with server_factory() as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream(timeout=60)
            await jet.create_key_value(
                KeyValueConfig(
                    bucket="elastic-consumer-groups", limit_marker_ttl=timedelta(seconds=60)
                )
            )
            group = await elastic(jet, name, "m1")
            bucket = await jet.get_key_value("elastic-consumer-groups")
            worker = group.worker("m1", Seen(name).handler("m1"), config=QUICK)
            await worker.start()
            if marker == "purge":
                await bucket.purge(f"{name}.g")
            else:
                entry = await bucket.get(f"{name}.g")
                await bucket.put(f"{name}.g", entry.value, ttl=1)
            await worker.wait(timeout=60)
            await worker.stop()


@pytest.mark.parametrize("kind", ["elastic", "static"])
@pytest.mark.parametrize("broken", [False, True])
async def test_settings_that_members_cannot_follow_end_them(opened, name, kind, broken):
    async with opened() as jet:
        group = await (elastic if kind == "elastic" else static)(jet, name, "m1", partitions=4)
        worker = group.worker("m1", Seen(name).handler("m1"), config=QUICK)
        await worker.start()
        bucket = await jet.get_key_value(f"{kind}-consumer-groups")
        value = b"{" if broken else b'{"max_members":3,"members":["m1"]}'
        await bucket.put(f"{name}.g", value)
        error = InvalidGroupConfig if broken else GroupChanged
        with pytest.raises(error, match=name):
            await worker.wait(timeout=60)
        await worker.stop()
        if kind == "static":
            names = [each async for each in (await jet.get_stream(name)).consumer_names()]
            # The positions are needed once the configuration is repaired.
            assert names == (["g-m1"] if broken else [])
        if broken:
            with pytest.raises(InvalidGroupConfig):
                await group.info()


@pytest.mark.parametrize("kind", ["elastic", "static"])
async def test_a_stored_group_of_too_many_filters_is_refused_and_can_be_deleted(opened, name, kind):
    async with opened() as jet:
        make, groups = (elastic, elastic_groups) if kind == "elastic" else (static, static_groups)
        group = await make(jet, name, "m1", partitions=4)
        subjects = [f"{name}.{number}.*" for number in range(2_000)]
        filters = (
            {"partitioning_filters": [{"filter": each} for each in subjects]}
            if kind == "elastic"
            else {"filters": subjects}
        )
        stored = {"max_members": 65_536, "members": ["m1"], **filters}
        bucket = await jet.get_key_value(f"{kind}-consumer-groups")
        await bucket.put(f"{name}.g", json.dumps(stored).encode())
        worker = group.worker("m1", Seen(name).handler("m1"), config=QUICK)
        with pytest.raises(InvalidGroupConfig, match="65536 partitions of 2000 filters"):
            await worker.start()
        assert [each async for each in groups(jet, name)] == ["g"]
        await group.delete()
        assert [each async for each in groups(jet, name)] == []


async def test_a_forged_member_does_not_delete_the_consumer_of_others(opened, name):
    async with opened() as jet:
        group = await static(jet, name, "m1", "m2")
        stream = await jet.get_stream(name)
        config = ConsumerConfig(durable_name="g-victim", ack_policy="explicit")
        await stream.create_consumer(config)
        async with group.worker("m1", Seen(name).handler("m1"), config=QUICK):
            pass
        stored = {"max_members": 10, "members": ["m1", "victim"]}
        bucket = await jet.get_key_value("static-consumer-groups")
        await bucket.put(f"{name}.g", json.dumps(stored).encode())
        with pytest.raises(InvalidGroupConfig, match=r"'g-victim' of .* did not create them"):
            await group.delete()
        assert [each async for each in static_groups(jet, name)] == []
        assert [each async for each in stream.consumer_names()] == ["g-victim"]


async def test_a_forged_elastic_group_does_not_delete_the_stream_of_others(opened, name):
    async with opened() as jet:
        await elastic(jet, name, "m1")
        await jet.create_stream(StreamConfig(name=f"{name}-victim", subjects=[f"{name}-v.>"]))
        bucket = await jet.get_key_value("elastic-consumer-groups")
        await bucket.put(f"{name}.victim", b'{"max_members":3,"members":["m1"]}')
        group = ElasticGroup(jet, name, "victim")
        with pytest.raises(InvalidGroupConfig, match=f"no copy of {name}"):
            await group.delete()
        with pytest.raises(GroupNotFound):
            await group.delete()
        assert (await jet.get_stream(f"{name}-victim")).name == f"{name}-victim"
        assert [each async for each in elastic_groups(jet, name)] == ["g"]


async def test_an_elastic_member_makes_its_consumer_again(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        seen, reports = Seen(name), []
        async with group.worker("m1", seen.handler("m1"), config=QUICK, on_report=reports.append):
            await publish(jet, name, 0, 5)
            await consumed(seen, 5)
            await (await jet.get_stream(group.source_stream_name)).delete_consumer("m1")
            await publish(jet, name, 5, 10)
            await consumed(seen, 10)
            seen.check(10)
        assert any(
            isinstance(each, PartitionsRevoked) and each.reason == "the consumer was deleted"
            for each in reports
        )


async def test_a_static_member_ends_without_its_consumer(opened, name):
    async with opened() as jet:
        group = await static(jet, name, "m1")
        worker = group.worker("m1", Seen(name).handler("m1"), config=QUICK)
        await worker.start()
        await (await jet.get_stream(name)).delete_consumer("g-m1")
        with pytest.raises(js.ConsumerDeleted):
            await worker.wait(timeout=60)


# ---- members


async def test_members_change_by_any_number_of_clients_at_once(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name)
        assert (await group.info()).members == []

        async def add(member):
            await ElasticGroup(jet, name, "g").add_members(member)

        await together(*(partial(add, f"m{number}") for number in range(6)))
        info = await group.info()
        assert sorted(info.members) == [f"m{number}" for number in range(6)]
        assert info.partitions("m0") == (0, 6)
        assert await group.remove_members(["m1", "m2", "m3", "m4", "m5"]) == ["m0"]
        # Nothing to change is nothing to write.
        before = (await group.info()).revision
        await group.add_members("m0")
        assert (await group.info()).revision == before


async def test_changes_that_come_while_a_handler_runs_are_all_followed(server, name):
    """The worker leaves its partitions, waits for the handler, and then finds two changes."""
    begun, noted, may_end = [], [], []

    async def handler(message):
        begun.append(message.data)
        while not may_end:
            await pause(0.01)

    async def has_begun():
        return begun

    async def all_noted():
        return len(noted) == 3

    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        group = await elastic(jet, name, "m1", partitions=2)
        worker = group.worker("m1", handler, config=QUICK)
        async with worker:
            await publish(jet, name, 0, 1)
            await eventually(has_begun)
            with hooked("group: change noted", noted.append):
                await group.remove_members("m1")
                # With the first of these, the member still has no partitions.
                await group.add_members("m2")
                await group.add_members("m1")
                await eventually(all_noted)
            may_end.append(True)
            await eventually(has, worker, [0])


async def test_partitions_may_be_mapped_by_hand(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1", partitions=3)
        seen = Seen(name)
        one = group.worker("m1", seen.handler("m1"), config=QUICK)
        two = group.worker("m2", seen.handler("m2"), config=QUICK)
        async with one, two:
            assert await group.set_mappings({"m1": [1], "m2": [2, 0]}) == ["m1", "m2"]
            await eventually(has, one, [1])
            await eventually(has, two, [0, 2])
            with pytest.raises(js.BadArgument, match="mapped"):
                await group.add_members("m3")
            with pytest.raises(js.BadArgument, match="missing"):
                await group.set_mappings({"m1": [1]})
            await publish(jet, name, 0, 20)
            await consumed(seen, 20)
            assert set(seen.by.values()) == {"m1", "m2"}
            assert sorted(await group.active_members()) == ["m1", "m2"]
            await group.delete_mappings()
            await eventually(has, one, [])
            await group.add_members("m2")
            await eventually(has, two, [0, 1, 2])


async def test_groups_of_a_stream_are_listed(opened, name):
    async with opened() as jet:
        await elastic(jet, name, "m1")
        other = ElasticGroup(jet, name, "other")
        by_key = PartitioningFilter(filter=f"{name}.*", partitioning_wildcards=[1])
        await other.create(ElasticGroupConfig(max_members=2, partitioning_filters=[by_key]))
        fixed = StaticGroup(jet, name, "fixed")
        await fixed.create(StaticGroupConfig(max_members=2, members=["m1"]))
        assert sorted([each async for each in elastic_groups(jet, name)]) == ["g", "other"]
        assert [each async for each in static_groups(jet, name)] == ["fixed"]
        assert [each async for each in static_groups(jet, f"{name}0")] == []
        await other.delete()
        assert [each async for each in elastic_groups(jet, name)] == ["g"]


async def test_without_any_group_nothing_is_listed(server_factory):
    with server_factory() as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            assert [each async for each in elastic_groups(jet, "S")] == []
            with pytest.raises(GroupNotFound, match="create makes it"):
                await ElasticGroup(jet, "S", "g").info()
            with pytest.raises(GroupNotFound):
                await StaticGroup(jet, "S", "g").delete()
            with pytest.raises(GroupNotFound):
                await StaticGroup(jet, "S", "g").worker("m", Seen("S").handler("m")).start()


async def test_a_member_waits_until_its_partitions_are_free(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1", partitions=2)
        own = await jet.get_stream(group.source_stream_name)
        other = await own.create_consumer(
            ConsumerConfig(durable_name="other", filter_subject=f"1.{name}.*")
        )
        seen, reports = Seen(name), []
        async with group.worker(
            "m1", seen.handler("m1"), config=QUICK, on_report=reports.append
        ) as worker:

            async def tried_often():
                return len(reports) >= 3

            await eventually(tried_often)
            assert worker.partitions == ()
            assert all(isinstance(each, JoinDelayed) and each.is_usual for each in reports)
            assert [each.retry_in for each in reports[:3]] == [0.05, 0.1, 0.2]
            await other.delete()
            await publish(jet, name, 0, 5)
            await consumed(seen, 5)


async def test_an_instance_with_other_settings_waits_and_says_so(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        seen, reports = Seen(name), []
        first = group.worker("m1", seen.handler("m1"), config=QUICK)
        second = group.worker("m1", seen.handler("m1"), config=STRICT, on_report=reports.append)
        async with first:
            consumer = await (await jet.get_stream(group.source_stream_name)).get_consumer("m1")

            async def waits():
                return (await consumer.info()).num_waiting

            await eventually(waits)
            async with second:

                async def said():
                    return reports

                await eventually(said)
                assert isinstance(reports[0], JoinDelayed)
                assert not reports[0].is_usual
                assert "max_ack_pending" in str(reports[0].error)
                await publish(jet, name, 0, 5)
                await consumed(seen, 5)
                await eventually(has_counts, first, 5, 0)
                await first.stop()
                await publish(jet, name, 5, 10)
                await consumed(seen, 10)
                await eventually(has_counts, second, 5, 0)


# ---- creating


@pytest.mark.parametrize("kind", ["elastic", "static"])
async def test_a_group_is_created_once(opened, name, kind):
    async with opened() as jet:
        group = await (elastic if kind == "elastic" else static)(jet, name, "m1", partitions=2)
        config = (await group.info()).config
        again = await group.create(config)
        assert again.config == config
        assert encode(config) == encode((await group.info()).config)
        other = type(config)(max_members=3, members=["m1"])
        with pytest.raises(GroupExists, match="max_members"):
            await group.create(other)
        kinds = {"elastic": ElasticGroup, "static": StaticGroup}
        with pytest.raises(js.StreamNotFound):
            await kinds[kind](jet, f"{name}-none", "g").create(config)


async def test_an_elastic_group_keeps_its_members_when_it_is_created_again(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1", "m2")
        config = (await group.info()).config
        fewer = ElasticGroupConfig(
            max_members=config.max_members, partitioning_filters=config.partitioning_filters
        )
        assert (await group.create(fewer)).members == ["m1", "m2"]
        # Its stream is created again if it is missing.
        await jet.delete_stream(f"{name}-g")
        await group.create(fewer)
        assert (await jet.get_stream(f"{name}-g")).cached_info.config.retention == "workqueue"


async def test_the_limits_of_a_group_hold_messages_back(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, max_buffered_msg=5)
        await publish(jet, name, 0, 7)
        own = await jet.get_stream(f"{name}-g")

        async def full():
            return (await own.info()).state.messages == 5

        await eventually(full)
        seen = Seen(name)
        await group.add_members("m1")
        async with group.worker("m1", seen.handler("m1"), config=QUICK):
            await consumed(seen, 7)
        seen.check(7)


async def test_the_whole_subject_as_the_key_needs_server_2_12(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage="memory"))
        group = ElasticGroup(jet, name, "g")
        config = ElasticGroupConfig(max_members=3, members=["m1"])
        if connection.server_info.version_numbers < (2, 12, 0):
            with pytest.raises(js.Unsupported, match=r"whole subject needs server 2\.12"):
                await group.create(config)
            with pytest.raises(GroupNotFound):
                await group.info()
            return
        await group.create(config)
        seen = Seen(name)
        async with group.worker("m1", seen.handler("m1"), config=QUICK):
            await publish(jet, name, 0, 10)
            await consumed(seen, 10)


# ---- what handlers see


async def test_handlers_see_the_published_subject_and_the_partition(opened, name):
    async with opened() as jet:
        await elastic(jet, name, "m1", partitions=4)
        group, found, failed = ElasticGroup(jet, name, "g"), [], []

        async def handler(message):
            if message.data == b"1" and not failed:
                failed.append(message)
                raise OSError("try again")
            found.append((message.subject, message.partition, message.data))
            assert message.metadata.stream == f"{name}-g"

        retry = Retry(attempts=3, first=0.01)
        async with group.worker("m1", handler, config=QUICK, retry=retry) as worker:
            for number in range(4):
                await jet.publish(f"{name}.key", b"%d" % number)

            async def all_came():
                return len(found) == 4

            await eventually(all_came)
            await eventually(has_counts, worker, 4, 1)
        # One that is tried again holds back those behind it.
        assert [data for _, _, data in found] == [b"0", b"1", b"2", b"3"]
        [(subject, number)] = {(subject, number) for subject, number, _ in found}
        assert subject == f"{name}.key"
        assert number in range(4)


async def has_counts(worker, handled, retried):
    return (worker.handled, worker.retried, worker.rejected) == (handled, retried, 0)


async def test_messages_that_are_given_up_become_dead_letters(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        letters = DeadLetters(jet, group.source_stream_name)

        async def handler(message):
            raise Reject("no")

        worker = group.worker("m1", handler, config=QUICK, dead_letters=letters)
        async with worker:
            await publish(jet, name, 0, 1)
            await eventually(has_rejected, worker)
        [letter] = [each async for each in letters.letters()]
        assert (letter.subject, letter.data, letter.reason) == (f"{name}.k0", b"0", "no")


async def has_rejected(worker):
    return worker.rejected


async def test_partitions_are_handled_side_by_side(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        running, most, done = [], [], []

        async def handler(message):
            running.append(message.partition)
            most.append(len(running))
            assert running.count(message.partition) == 1
            await pause(0.01)
            running.remove(message.partition)
            done.append(message.data)

        await publish(jet, name, 0, 60)
        async with group.worker("m1", handler, concurrency=5, config=QUICK):

            async def all_came():
                return len(done) == 60

            await eventually(all_came)
        assert 1 < max(most) <= 5


async def test_a_slow_handler_finishes_before_its_partition_moves(server, name, tuned):
    """The progress of the handler is reported to its end. The next member starts after it."""
    # Each 0.1 s.
    tuned("ack progress reports", 600)
    async with (
        js.connect(server.url) as connection,
        reports_of(server, f"{name}-g") as reports,
    ):
        jet = connection.jetstream(timeout=60)
        group = await elastic(jet, name, "m1", partitions=1)
        begun, events, noted = [], [], []

        async def all_noted():
            return len(noted) == 2

        async def slow(message):
            begun.append(message.data)
            await eventually(all_noted)
            await reports.wait(1, times=10)
            events.append(("slow", message.data))

        async def quick(message):
            events.append(("quick", message.data))

        one = group.worker("m1", slow, config=CALM)
        two = group.worker("m2", quick, config=CALM)
        async with one, two:
            await publish(jet, name, 0, 3)

            async def has_begun():
                return begun

            await eventually(has_begun)
            with hooked("group: change noted", noted.append):
                await group.set_mappings({"m2": [0]})
                await eventually(all_noted)

            async def all_came():
                return len(events) == 3

            await eventually(all_came)
        assert events == [("slow", b"0"), ("quick", b"1"), ("quick", b"2")]
        assert begun == [b"0"]


# ---- misuse


async def test_what_a_worker_refuses(opened, name):
    async with opened() as jet:
        group = await static(jet, name, "m1")

        async def handler(message):
            pass

        with pytest.raises(js.BadArgument, match="no partitions for member 'm2'"):
            await group.worker("m2", handler).start()
        with pytest.raises(js.BadArgument, match="priority_groups"):
            group.worker("m1", handler, config=ConsumerConfig(priority_groups=["x"]))
        with pytest.raises(js.BadArgument, match="order"):
            group.worker("m1", handler, order="partitions")
        with pytest.raises(js.BadArgument, match="handler"):
            group.worker("m1", 7)
        worker = group.worker("m1", handler)
        with pytest.warns(RuntimeWarning, match="was never started"):
            await worker.stop()
        async with worker:
            with pytest.raises(js.BadArgument, match="started already"):
                await worker.start()
            # Another instance has to have the same settings.
            with pytest.raises(js.ConsumerExists, match="ack_wait"):
                await group.worker("m1", handler, config=QUICK).start()
        with pytest.raises(js.BadArgument, match="members"):
            await StaticGroup(jet, name, "none").create(StaticGroupConfig(max_members=2))
        with pytest.raises(js.BadArgument, match="ElasticGroupConfig"):
            await ElasticGroup(jet, name, "none").create(StaticGroupConfig(max_members=2))


@pytest.mark.parametrize("way", ["closed", "exit"])
async def test_partitions_are_revoked_when_an_error_ends_the_work(server, name, way):
    reports, seen = [], []

    async def handle(message):
        seen.append(message)
        if way == "exit":
            raise SystemExit(3)

    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        group = await elastic(jet, name, "m1")
        worker = group.worker("m1", handle, config=QUICK, on_report=reports.append)
        await worker.start()
        await publish(jet, name, 0, 1)

        async def handled():
            return bool(seen)

        await eventually(handled)
        if way == "closed":
            await connection.close()
        with pytest.raises(js.ConnectionClosed if way == "closed" else SystemExit):
            await worker.wait(timeout=60)
    # The end is reported unless the program has closed the connection.
    ends = [reports.pop()] if way == "exit" else []
    assert [type(end) for end in ends] == [js.WorkEnded] * len(ends)
    revoked = reports[-1]
    assert isinstance(revoked, PartitionsRevoked)
    assert revoked.partitions == reports[0].partitions
    said = "the connection is closed: the program called `close`" if way == "closed" else "3"
    assert revoked.reason.startswith(f"an error ended the work: {said}")


async def test_an_error_of_a_handler_that_ends_programs_ends_the_work(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")

        async def handler(message):
            raise SystemExit(3)

        worker = group.worker("m1", handler, config=QUICK)
        await worker.start()
        await publish(jet, name, 0, 1)
        with pytest.raises(SystemExit):
            await worker.wait(timeout=60)


async def test_a_handler_may_end_the_work(opened, name):
    async with opened() as jet:
        group = await elastic(jet, name, "m1")

        async def handler(message):
            if message.data in {b"2", b"3"}:
                await worker.stop()

        worker = group.worker("m1", handler, config=QUICK)
        await publish(jet, name, 0, 5)
        await worker.run(signals=False)
        assert worker.handled >= 3
        await worker.stop()


async def test_a_mapping_is_stored_as_other_clients_do(opened, name):
    async with opened() as jet:
        mapping = [MemberMapping(member="a", partitions=[1, 0])]
        group = await static(jet, name, partitions=2, member_mappings=mapping)
        assert (await group.info()).partitions("a") == (1, 0)
        entry = await (await jet.get_key_value("static-consumer-groups")).get(f"{name}.g")
        assert entry.value == (
            b'{"max_members":2,"member_mappings":[{"member":"a","partitions":[1,0]}]}'
        )


async def test_no_instance_stays_pinned_after_it_stopped(server, name):
    seen = Seen(name)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        group = await elastic(jet, name, "m1")
        async with group.worker("m1", seen.handler("m1"), config=QUICK):
            await publish(jet, name, 0, 1)
            await consumed(seen, 1)
            consumer = await (await jet.get_stream(group.source_stream_name)).get_consumer("m1")
            assert pin_holder(consumer.cached_info)
        assert pin_holder(await consumer.info()) == ""
        [state_of_group] = consumer.cached_info.priority_groups
        assert state_of_group.group == PRIORITY_GROUP


async def test_a_worker_reports_that_the_source_stream_was_deleted(opened, name, tuned):
    tuned("group source check", 0.1)
    reports = []
    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        seen = Seen(name)

        async def warnings():
            return [each for each in reports if isinstance(each, js.PullWarning)]

        async with group.worker("m1", seen.handler("m1"), on_report=reports.append):
            await publish(jet, name, 0, 1)
            await consumed(seen, 1)
            assert await warnings() == []
            await jet.delete_stream(name)
            # A server looks for a missing source after 10 s.
            [warning] = await eventually(warnings, patience=60)
            # The next checks report nothing else.
            await pause(0.5)
            assert await warnings() == [warning]
        assert warning.text == (
            f"elastic consumer group g of stream {name} receives no new messages: its stream"
            f" {group.source_stream_name} cannot copy from stream {name}: stream not found"
        )
        await group.delete()


async def test_a_callback_of_the_source_check_may_end_the_work(opened, name, tuned):
    tuned("group source check", 0.1)

    def on_report(report):
        if isinstance(report, js.PullWarning):
            raise LookupError(report.text)

    async with opened() as jet:
        group = await elastic(jet, name, "m1")
        worker = group.worker("m1", Seen(name).handler("m1"), on_report=on_report)
        await worker.start()
        await jet.delete_stream(name)
        with pytest.raises(LookupError, match=f"cannot copy from stream {name}"):
            await worker.wait(timeout=60)


async def first_warning(jet, name, tuned, group):
    """Return the first warning of a worker that receives nothing, after another message came."""
    tuned("group subject check", 0.1)
    reports = []
    async with group.worker("m1", Seen(name).handler("m1"), on_report=reports.append):

        async def warnings():
            return [each for each in reports if isinstance(each, js.PullWarning)]

        # An empty stream is no trouble.
        await pause(0.5)
        assert await warnings() == []
        await publish(jet, name, 0, 1)
        [warning] = await eventually(warnings, patience=60)
        await pause(0.5)
        assert await warnings() == [warning]
        return warning.text


async def test_a_static_group_reports_a_stream_without_partition_numbers(opened, name, tuned):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        config = StaticGroupConfig(max_members=4, members=["m1"], filters=[f"{name}.*"])
        group = StaticGroup(jet, name, "g")
        await group.create(config)
        text = await first_warning(jet, name, tuned, group)
        assert text == (
            f"static consumer group g of stream {name} receives no messages: the stream stored its"
            f" last message as {name}.{Seen.key(0)}, without a partition number (0 to 3) and one of"
            " the filters of the group after it; give the stream a subject_transform that adds the"
            " number, or create an elastic group"
        )


async def test_an_elastic_group_reports_filters_that_match_nothing(opened, name, tuned):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*", f"x.{name}.*"]))
        filters = [PartitioningFilter(filter=f"x.{name}.*")]
        config = ElasticGroupConfig(max_members=4, members=["m1"], partitioning_filters=filters)
        group = ElasticGroup(jet, name, "g")
        await group.create(config)
        text = await first_warning(jet, name, tuned, group)
        assert text == (
            f"elastic consumer group g of stream {name} receives no messages: no message of the"
            f" stream matches the filters of the group (x.{name}.*); compare them with the subjects"
            " of the stream"
        )


async def test_a_group_whose_messages_another_instance_handles_reports_nothing(opened, name, tuned):
    tuned("group subject check", 0.1)
    reports, seen = [], Seen(name)
    async with opened() as jet:
        group = await static(jet, name, "m1")
        async with group.worker("m1", seen.handler("m1")):
            await publish(jet, name, 0, 1)
            await consumed(seen, 1)
            async with group.worker("m1", seen.handler("m1"), on_report=reports.append):
                await pause(0.5)
    assert not [each for each in reports if isinstance(each, js.PullWarning)]
