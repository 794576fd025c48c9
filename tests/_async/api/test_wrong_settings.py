"""Wrong arguments for configurations: each error says how to write them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import js_async as js
from js_async import (
    ConsumerConfig,
    KeyValueConfig,
    ObjectStoreConfig,
    StreamConfig,
)
from js_async.backup import backup_stream, restore_stream
from js_async.groups import (
    ElasticGroup,
    ElasticGroupConfig,
    PartitioningFilter,
    StaticGroup,
    StaticGroupConfig,
)
from twinstream.errors import InvalidPullRequest


async def test_a_name_instead_of_a_configuration_is_shown_in_one(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        calls = [
            (jet.create_stream, "a StreamConfig is expected, got str: pass StreamConfig(name='x')"),
            (stream.create_consumer, "pass ConsumerConfig(durable_name='x')"),
            (jet.create_key_value, "pass KeyValueConfig(bucket='x')"),
            (jet.create_object_store, "an ObjectStoreConfig is expected, got str: pass Obj"),
        ]
        for call, shown in calls:
            with pytest.raises(js.BadArgument) as caught:
                await call("x")
            assert shown in str(caught.value)


def test_a_misspelt_setting_is_compared_with_the_known_ones():
    with pytest.raises(TypeError, match=r"argument 'subject'.*id you mean 'subjects'") as caught:
        StreamConfig(name="A", subject=["a"])
    assert str(caught.value).lower().count("did you mean") == 1
    with pytest.raises(TypeError, match=r"argument 'durable'.*id you mean 'durable_name'"):
        ConsumerConfig(durable="c")
    with pytest.raises(TypeError, match="were given; the fields are keyword arguments"):
        StreamConfig("A", ["a"])
    with pytest.raises(TypeError, match=r"argument 'qqqq'$"):
        StreamConfig(qqqq=1)


async def test_a_text_instead_of_a_record_is_refused_by_its_path(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        wanted = r"expected a StreamSource, got 'B'; write StreamSource\(name='B'\)"
        with pytest.raises(TypeError, match=rf"StreamConfig\.sources\[0\]: {wanted}"):
            await jet.create_stream(StreamConfig(name=f"{name}2", sources=["B"]))
        with pytest.raises(TypeError, match=rf"KeyValueConfig\.mirror: {wanted}"):
            await jet.create_key_value(KeyValueConfig(bucket=name, mirror="B"))
        with pytest.raises(TypeError, match=rf"KeyValueConfig\.sources\[0\]: {wanted}"):
            await jet.create_key_value(KeyValueConfig(bucket=name, sources=["B"]))
        with pytest.raises(TypeError, match=rf"ObjectStoreConfig\.mirror: {wanted}"):
            await jet.create_object_store(ObjectStoreConfig(bucket=name, mirror="B"))
        group = StaticGroup(jet, name, "s")
        with pytest.raises(js.BadArgument, match="each member mapping must be a MemberMapping"):
            await group.create(StaticGroupConfig(max_members=2, member_mappings={"a": [0, 1]}))


async def test_members_are_one_text_or_several(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        group = ElasticGroup(jet, name, "g")
        # Not the whole subject as the key, which servers of 2.11 cannot have.
        key = PartitioningFilter(filter=f"{name}.*", partitioning_wildcards=[1])
        await group.create(ElasticGroupConfig(max_members=2, partitioning_filters=[key]))
        for call in (group.add_members, group.remove_members):
            for wrong in (None, 5, ["a", 5], [["a", "b"]]):
                with pytest.raises(js.BadArgument, match=r"a text|a name or an iterable of them"):
                    await call(wrong)
        assert await group.add_members("anna") == ["anna"]
        assert await group.add_members(each for each in ("bert", "carl")) == [
            "anna",
            "bert",
            "carl",
        ]
        assert await group.remove_members(["anna", "carl"]) == ["bert"]
        assert await group.remove_members([]) == ["bert"]
        assert await group.remove_members("bert") == []
        await group.delete()


async def test_a_list_instead_of_several_arguments_is_refused(opened, name):
    async with opened() as jet:
        bucket = await jet.create_key_value(KeyValueConfig(bucket=name))
        with pytest.raises(js.InvalidKey, match="this call takes one key"):
            await bucket.get(["a", "b"])
        with pytest.raises(js.InvalidKey, match="filter 7 is not a string"):
            await bucket.get_many([7])
        with pytest.raises(js.BadArgument, match="keys must be one key or an iterable of them"):
            await bucket.get_many(7)


async def test_a_second_path_is_no_name_of_an_object(opened, name, tmp_path):
    path = tmp_path / "content"
    path.write_bytes(b"x")
    async with opened() as jet:
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name))
        # In the order of `get_file`, the second argument would be the path.
        with pytest.raises(TypeError, match="positional"):
            await store.put_file("content", str(path))
        with pytest.raises(js.BadArgument, match="encode it, or pass the path of a file to put_f"):
            await store.put("picture", "picture.png")
        with pytest.raises(js.BadArgument, match="pass the path of a file to put_file"):
            await store.put("content", Path(path))
        assert [each async for each in store.list()] == []


async def test_the_end_of_a_pause_is_not_taken_for_a_duration(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        with pytest.raises(js.BadArgument, match="pass the end of a pause as until="):
            await consumer.pause(datetime(2040, 1, 1, tzinfo=UTC))


async def test_a_missing_message_is_named(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_direct=True)
        stream = await jet.create_stream(config)
        moment = datetime(2040, 1, 1, tzinfo=UTC)
        subject = f"{name}.a"
        for direct in (False, True):
            with pytest.raises(js.MessageNotFound, match=r": sequence 7$"):
                await stream.get_message(7, direct=direct)
            last = f": the last message of subject {subject}$"
            with pytest.raises(js.MessageNotFound, match=last):
                await stream.get_last_message(subject, direct=direct)
            first = f": the first message of subject {subject} from"
            with pytest.raises(js.MessageNotFound, match=f"{first} 7 on$"):
                await stream.get_next_message(subject, seq=7, direct=direct)
            with pytest.raises(js.MessageNotFound, match=f"{first} time 2040-01-01T00:00:00Z on$"):
                await stream.get_next_message(subject, start_time=moment, direct=direct)


async def test_a_fetch_without_a_priority_group_shows_the_argument(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        config = ConsumerConfig(
            durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
        )
        consumer = await stream.create_consumer(config)
        with pytest.raises(InvalidPullRequest, match=r"pass priority=Priority\(group=\.\.\.\)"):
            await consumer.fetch(1, timeout=5)


async def test_refusals_say_what_to_try(opened, name, tmp_path):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        with pytest.raises(js.WrongStream) as caught:
            await jet.publish(f"{name}.a", b"", expected_stream="B")
        assert "another stream has this subject" in str(caught.value)
        await jet.publish(f"{name}.a", b"")
        await backup_stream(jet, stream.name, tmp_path / "backup")
        with pytest.raises(js.StreamExists) as caught:
            await restore_stream(jet, tmp_path / "backup")
        assert "delete the stream first" in str(caught.value)
        with pytest.raises(js.BadArgument, match=r"got a dict: pass json\.dumps\(data\)\.encode"):
            await jet.publish(f"{name}.a", {"id": 1})
        with pytest.raises(js.BadArgument, match=r"raise its max_payload, or store .* object"):
            await jet.publish(f"{name}.a", bytes(2_000_000))


async def test_a_second_consumer_of_a_work_queue_says_how_to_share(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.*"], retention="workqueue")
        stream = await jet.create_stream(config)
        for subject in (None, f"{name}.a"):
            first = ConsumerConfig(durable_name="a", filter_subject=subject)
            await stream.create_consumer(first)
            with pytest.raises(js.JetStreamError) as caught:
                await stream.create_consumer(
                    ConsumerConfig(durable_name="b", filter_subject=subject)
                )
            assert "share one consumer" in str(caught.value)
            await stream.delete_consumer("a")
