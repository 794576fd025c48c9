"""Streams: created, found, changed, listed, read and deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from twinstream.errors import InvalidConfig
from twinstream.models import ConsumerConfig, StreamConfig


async def test_a_stream_is_created_once_and_found_again(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"])
        created = await jet.create_stream(config)
        again = await jet.create_stream(config)
        found = await jet.get_stream(name)
        assert created.name == again.name == found.name == name
        assert found.cached_info.config.subjects == [f"{name}.>"]
        assert found.cached_info.created == created.cached_info.created


async def test_another_configuration_under_the_same_name_is_an_error(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        with pytest.raises(js.StreamExists, match="max_msgs: wanted 1, is -1") as caught:
            await jet.create_stream(StreamConfig(name=name, subjects=[name], max_msgs=1))
        assert caught.value.err_code == 10058
        assert [each.field for each in caught.value.differences] == ["max_msgs"]


async def test_a_refused_configuration_carries_what_the_rules_say(opened, name):
    async with opened() as jet:
        with pytest.raises(InvalidConfig) as caught:
            await jet.create_stream(
                StreamConfig(name=name, subjects=[name], retention="work_queue")
            )
        assert "Did you mean 'workqueue'?" in str(caught.value)
        assert caught.value.description.startswith("invalid JSON")
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        second = timedelta(seconds=1)
        config = StreamConfig(
            name=name, subjects=[name], max_age=second, duplicate_window=2 * second
        )
        with pytest.raises(InvalidConfig) as caught:
            await jet.update_stream(config)
        assert "duplicate_window is longer than max_age" in str(caught.value)
        config = ConsumerConfig(durable_name="c", max_deliver=1, backoff=[second] * 3)
        with pytest.raises(js.JetStreamError) as caught:
            await stream.create_consumer(config)
        assert "more backoff values than deliveries" in str(caught.value)
        config = ConsumerConfig(name="f", filter_subject=name, filter_subjects=[name])
        with pytest.raises(js.JetStreamError) as caught:
            await stream.create_consumer(config)
        assert caught.value.err_code == 10136
        assert "exclude each other" in str(caught.value)


async def test_text_that_utf_8_cannot_hold_is_refused_by_its_path(opened, name):
    async with opened() as jet:
        with pytest.raises(js.BadArgument, match=r"^description: 'a\\ud800' is not valid Unicode"):
            await jet.create_stream(StreamConfig(name=name, description="a\ud800"))
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        with pytest.raises(js.BadArgument, match=r"^config\.metadata\.k: "):
            await stream.create_consumer(ConsumerConfig(name="c", metadata={"k": "\udfff"}))
        with pytest.raises(js.BadArgument, match=r"^metadata: '\\ud800'"):
            await jet.update_stream(StreamConfig(name=name, metadata={"\ud800": "v"}))


async def test_missing_stream_has_its_own_error(opened, name):
    async with opened() as jet:
        for call in (jet.get_stream, jet.delete_stream):
            with pytest.raises(js.StreamNotFound, match=name):
                await call(name)


async def test_a_bad_name_is_refused_before_anything_is_sent(opened):
    async with opened() as jet:
        for bad in ("", "a.b", "a b", "a\r\nPUB x 0", "a>", "a/b", "x" * 256):
            with pytest.raises(js.BadArgument):
                await jet.get_stream(bad)


async def test_what_is_no_configuration_is_refused_by_its_type(opened, name):
    async with opened() as jet:
        with pytest.raises(js.BadArgument, match=r"a StreamConfig is expected, got dict; .*decode"):
            await jet.create_stream({"name": name})
        stream = await jet.create_stream(StreamConfig(name=name))
        with pytest.raises(js.BadArgument, match="a ConsumerConfig is expected, got dict"):
            await stream.create_consumer({"durable_name": "c"})
        with pytest.raises(js.BadArgument, match="two names, 'a' as durable_name and 'b'"):
            await stream.create_consumer(ConsumerConfig(durable_name="a", name="b"))


async def test_update_replaces_and_create_or_update_does_either(opened, name):
    async with opened() as jet:
        made = await jet.create_or_update_stream(StreamConfig(name=name, subjects=[name]))
        assert made.cached_info.config.max_msgs == -1
        changed = await jet.create_or_update_stream(
            StreamConfig(name=name, subjects=[name], max_msgs=7)
        )
        assert changed.cached_info.config.max_msgs == 7
        updated = await jet.update_stream(StreamConfig(name=name, subjects=[name], max_msgs=8))
        assert updated.cached_info.config.max_msgs == 8
        with pytest.raises(js.BadArgument, match="OTHER"):
            await made.change(lambda config: StreamConfig(name="OTHER"))


async def test_a_stream_deletes_itself_and_binds_its_consumers(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await jet.publish(name, b"one")
        assert (await stream.bind_consumer("c").next()).data == b"one"
        await stream.delete()
        for call in (stream.delete, stream.info):
            with pytest.raises(js.StreamNotFound, match=name):
                await call()


async def test_streams_are_listed_by_name_and_by_subject(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.a", f"{name}.b"]))
        assert name in [each async for each in jet.stream_names()]
        assert [each async for each in jet.stream_names(f"{name}.a")] == [name]
        infos = [each async for each in jet.streams(f"{name}.b")]
        assert [info.config.name for info in infos] == [name]
        assert [each async for each in jet.stream_names(f"{name}.c")] == []


async def test_messages_are_read_and_removed_by_sequence(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        for number in range(5):
            await jet.publish(f"{name}.{number % 2}", b"%d" % number, headers={"N": str(number)})
        third = await stream.get_message(3)
        assert (third.subject, third.data, third.seq) == (f"{name}.0", b"2", 3)
        assert third.headers["N"] == "2"
        assert third.stream_name == name
        assert (await stream.get_last_message(f"{name}.1")).seq == 4
        await stream.delete_message(3)
        await stream.delete_message(4, erase=True)
        for seq in (3, 4, 99):
            with pytest.raises(js.MessageNotFound):
                await stream.get_message(seq)
        assert (await stream.info()).state.messages == 3


async def test_lists_refuse_a_subject_that_is_none(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        for wrong in ("", "a..b", "a b", ">.a"):
            for look in (jet.streams, jet.stream_names, stream.subjects):
                with pytest.raises(js.BadArgument, match="subject"):
                    look(wrong)


async def test_purge_accepts_a_subject_a_bound_or_a_rest(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        for number in range(10):
            await jet.publish(f"{name}.{number % 2}")
        assert await stream.purge(subject=f"{name}.0", keep=3) == 2
        assert await stream.purge(before_seq=5) == 2
        for wrong in ({"before_seq": 1, "keep": 1}, {"before_seq": 0}, {"subject": ""}):
            with pytest.raises(js.BadArgument):
                await stream.purge(**wrong)
        assert await stream.purge(before_seq=1) == 0
        assert await stream.purge(subject=f"{name}.1", before_seq=1) == 0
        assert await stream.purge() == 6


async def test_the_account_shows_usage(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name], storage="memory"))
        info = await jet.account_info()
        assert (info.streams or 0) >= 1


async def test_domain_without_servers_is_named_in_the_error(opened):
    async with opened(domain="elsewhere") as jet:
        with pytest.raises(js.JetStreamNotEnabled, match=r"\$JS\.elsewhere\.API"):
            await jet.account_info()
    with pytest.raises(js.BadArgument):
        async with opened(domain="a", prefix="b"):
            pass
