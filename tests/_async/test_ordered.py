"""Ordered reads: each message once and in order, through any trouble."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import js_async as js
from js_async import _ordered_consumer
from js_models import ConsumerConfig, ConsumerLimits, StreamConfig
from tests._async.flow import eventually
from tests._async.streams import filled


async def read(messages, count):
    """Return the stream sequences of the next messages."""
    return [(await messages.next(20)).metadata.stream_seq for _ in range(count)]


async def test_everything_comes_once_and_in_order(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1200)
        async with stream.ordered(max_messages=100) as messages:
            assert await read(messages, 1200) == list(range(1, 1201))
            assert messages.position == 1200
            assert messages.resets == 0
            await jet.publish(f"{name}.new")
            assert await read(messages, 1) == [1201]
        assert [each async for each in stream.consumer_names()] == []


async def test_it_starts_where_it_is_told(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        middle = (await stream.get_message(6)).time
        for options, expected in (
            ({"start_seq": 4}, 4),
            ({"start_time": middle}, 6),
            ({"deliver_policy": "last"}, 10),
            ({"subjects": f"{name}.7"}, 8),
            ({"subjects": [f"{name}.2", f"{name}.8"]}, 3),
        ):
            async with stream.ordered(**options) as messages:
                assert await read(messages, 1) == [expected]
        with pytest.raises(js.BadArgument):
            stream.ordered(start_seq=1, start_time=datetime.now(UTC))
        with pytest.raises(js.BadArgument):
            stream.ordered(subjects="a b")


async def test_a_lost_consumer_is_replaced(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 30)
        reports = []
        async with stream.ordered(max_messages=5, on_report=reports.append) as messages:
            seen = []
            for _ in range(6):
                seen += await read(messages, 5)
                for consumer in [each async for each in stream.consumer_names()]:
                    await stream.delete_consumer(consumer)
            assert seen == list(range(1, 31))
            assert messages.resets >= 4
            assert all(isinstance(report, js.PullWarning) for report in reports)


async def asked(messages, stream):
    """Ask for a message that does not come; return the names of the stream's consumers."""
    with pytest.raises(js.RequestTimeout):
        await messages.next(0.1)
    return [each async for each in stream.consumer_names()]


async def test_new_is_not_asked_for_twice(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        async with stream.ordered(deliver_policy="new") as messages:
            (consumer,) = await eventually(asked, messages, stream)
            await stream.delete_consumer(consumer)
            # Published while there is no consumer: "new" alone would skip it.
            await jet.publish(f"{name}.x")
            assert await read(messages, 1) == [6]


async def test_a_snapshot_by_subject_survives_a_reset(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        for number in range(12):
            await jet.publish(f"{name}.{number % 6}")
        async with stream.ordered(deliver_policy="last_per_subject", max_messages=2) as messages:
            first = await read(messages, 3)
            assert first == [7, 8, 9]
            for consumer in [each async for each in stream.consumer_names()]:
                await stream.delete_consumer(consumer)
            assert await read(messages, 3) == [10, 11, 12]
            await jet.publish(f"{name}.0")
            await jet.publish(f"{name}.0")
            assert await read(messages, 2) == [13, 14]


async def test_purges_and_deletes_are_no_gaps(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 20)
        async with stream.ordered(max_messages=4) as messages:
            assert await read(messages, 2) == [1, 2]
            for seq in (8, 9, 10):
                await stream.delete_message(seq)
            seen = await read(messages, 8)
            assert [seq for seq in seen if seq not in {8, 9, 10}][:5] == [3, 4, 5, 6, 7]
            await stream.purge()
            await jet.publish(f"{name}.after")
            while (seen := await read(messages, 1)) != [21]:
                assert seen[0] <= 20


async def test_a_stream_made_anew_is_read_from_its_beginning(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 10)
        reports = []
        async with stream.ordered(on_report=reports.append) as messages:
            assert await read(messages, 10) == list(range(1, 11))
            await jet.delete_stream(name)
            await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            await jet.publish(f"{name}.x")
            assert await read(messages, 1) == [1]
            assert js.Recreated(name) in reports


async def test_a_missing_stream_is_told(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        async with stream.ordered() as messages:
            assert await read(messages, 1) == [1]
            await jet.delete_stream(name)
            with pytest.raises(js.StreamNotFound):
                await messages.next(30)


async def test_the_link_may_break(server_factory, name):
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        async with js.connect(server.url, reconnect=policy) as connection:
            jet = connection.jetstream(timeout=10)
            stream = await filled(jet, name, 50)
            async with stream.ordered(max_messages=10) as messages:
                seen = await read(messages, 15)
                server.kill()
                server.restart()
                seen += await read(messages, 35)
                assert seen == list(range(1, 51))
                await eventually(published, jet, name)
                assert await read(messages, 1) == [51]


async def published(jet, name):
    try:
        return await jet.publish(f"{name}.x", msg_id="once")
    except (js.ConnectionLost, js.RequestTimeout, js.NoResponders):
        # The link, or the stream, is not mended yet.
        return None


async def test_idle_reads_do_not_reset(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        async with stream.ordered(expires=1, heartbeat=0.5) as messages:
            assert await read(messages, 1) == [1]
            with pytest.raises(js.RequestTimeout):
                await messages.next(timedelta(seconds=2.5))
            await jet.publish(f"{name}.x")
            assert await read(messages, 1) == [2]
            assert messages.resets == 0


async def test_a_read_that_is_closed_while_its_consumer_is_made_leaves_none(
    opened, name, monkeypatch
):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        messages = stream.ordered()
        own = _ordered_consumer.create_consumer

        async def closed_meanwhile(*args):
            info = await own(*args)
            await messages.close()
            return info

        monkeypatch.setattr(_ordered_consumer, "create_consumer", closed_meanwhile)
        assert [each async for each in messages] == []
        assert [each async for each in stream.consumer_names()] == []


async def test_a_stream_may_bound_how_long_its_consumers_are_idle(opened, name):
    async with opened() as jet:
        limits = ConsumerLimits(inactive_threshold=timedelta(seconds=20))
        config = StreamConfig(name=name, subjects=[f"{name}.>"], consumer_limits=limits)
        stream = await jet.create_stream(config)
        for number in range(2):
            await jet.publish(f"{name}.{number}")
        async with stream.ordered() as messages:
            assert await read(messages, 2) == [1, 2]
        assert [message.seq async for message in stream.read(via="consumer")] == [1, 2]


async def test_a_read_without_a_consumer_in_time_tells_why(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, max_consumers=1))
        reports = []
        async with stream.ordered(on_report=reports.append) as messages:
            with pytest.raises(js.RequestTimeout):
                await messages.next(0.1)
            (consumer,) = [each async for each in stream.consumer_names()]
            await stream.delete_consumer(consumer)
            await stream.create_consumer(ConsumerConfig(durable_name="other"))
            with pytest.raises(js.RequestTimeout, match="no message in time") as caught:
                await messages.next(1)
        assert "maximum consumers limit reached" in str(caught.value.__cause__)
        assert "maximum consumers limit reached" in str(reports[-1])
