"""Deleted consumers, and the three values of `on_deleted`."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests._async.streams import filled, waiting
from twinstream.models import ConsumerConfig

# A deletion is told by a status, or else by silence for two heartbeats: soon here.
BRISK = {"expires": 4, "heartbeat": 1}


async def test_consumer_that_never_existed_is_reported(opened, name):
    async with opened() as jet:
        await filled(jet, name, 1)
        async with jet.bind_consumer(name, "none").messages() as messages:
            with pytest.raises(js.ConsumerDeleted, match="none"):
                await messages.next(timeout=20)


async def test_error_explains_why_a_non_durable_consumer_was_deleted(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        config = ConsumerConfig(name="c", inactive_threshold=timedelta(seconds=0.2))
        consumer = await stream.create_consumer(config)

        async def gone():
            return [each async for each in stream.consumer_names()] == []

        await eventually(gone)
        async with consumer.messages() as messages:
            with pytest.raises(js.ConsumerDeleted, match=r"vanishes after 0\.2 s"):
                await messages.next(timeout=20)


async def test_deleted_stream_deletes_its_consumers(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))

        async def read():
            with pytest.raises(js.ConsumerDeleted):
                await messages.next(timeout=20)

        async def delete():
            await eventually(waiting, consumer)
            await jet.delete_stream(name)

        async with consumer.messages(**BRISK) as messages:
            await (await messages.next(timeout=60)).ack()
            await together(read, delete)
        with pytest.raises((js.NoResponders, js.ConsumerDeleted)):
            await consumer.fetch(1, timeout=20)


@pytest.mark.parametrize("policy", ["wait", "recreate"])
async def test_deleted_consumer_is_recreated(opened, name, policy):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        config = ConsumerConfig(durable_name="c")
        consumer = await stream.create_consumer(config)
        reports = []
        options = {"on_deleted": policy, "on_report": reports.append}
        async with consumer.messages(**BRISK, **options) as messages:
            await (await messages.next(timeout=60)).ack()

            async def take():
                return await messages.next(timeout=20)

            async def delete():
                await eventually(waiting, consumer)
                await stream.delete_consumer("c")
                if policy == "wait":
                    await stream.create_consumer(config)

            message, _ = await together(take, delete)
            # A re-created consumer starts where its policy says: at the beginning.
            assert message.metadata.stream_seq == 1
        assert (js.ConsumerRecreated("c") in reports) == (policy == "recreate")


async def test_a_different_consumer_is_explained(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 0)
        await stream.create_consumer(
            ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=9), max_deliver=3)
        )
        with pytest.raises(js.ConsumerExists) as caught:
            await stream.create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=8), max_deliver=3)
            )
        (found,) = caught.value.differences
        assert (found.field, found.wanted, found.actual) == ("ack_wait", 8 * 10**9, 9 * 10**9)
        with pytest.raises(js.ConsumerExists, match="max_deliver"):
            await stream.create_consumer(
                ConsumerConfig(durable_name="c", ack_wait=timedelta(seconds=9), max_deliver=4)
            )


@pytest.mark.since("2.14")
async def test_pause_resume_and_reset(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await consumer.pause(60)
        assert (await consumer.info()).paused
        assert not await consumer.fetch(1, timeout=0.2)
        await consumer.resume()
        assert not (await consumer.info()).paused
        for message in await consumer.fetch(5):
            await message.ack()
        await consumer.reset(3)
        again = await consumer.fetch(3)
        assert [message.metadata.stream_seq for message in again] == [3, 4, 5]
        with pytest.raises(js.BadArgument):
            await consumer.pause(0)


async def test_two_steps_of_adr_13(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        here = await consumer.fetch(10, timeout=20, two_step=True)
        assert (len(here), here.reason) == (3, js.BatchEnd.NO_MESSAGES)
        nothing = await consumer.fetch(10, timeout=0.2, two_step=True)
        assert nothing.reason is js.BatchEnd.EXPIRED
