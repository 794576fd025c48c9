"""The end of an iteration that was never started must not look like success."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.streams import filled
from twinstream.models import AckPolicy, ConsumerConfig

EXPLICIT = ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT)


async def acked(message):
    await message.ack()


async def a_consumption(jet, stream, path):
    consumer = await stream.create_consumer(EXPLICIT)
    return consumer.consume(acked)


async def a_processing(jet, stream, path):
    consumer = await stream.create_consumer(EXPLICIT)
    return jet.process(consumer, acked, into=stream.name, by="id")


async def a_worker(jet, stream, path):
    return jet.worker(stream.name, EXPLICIT, acked)


async def a_relay(jet, stream, path):
    outbox = js.SqliteOutbox(path / "outbox.db")
    return jet.outbox(outbox, stream=stream.name, by="id")


async def a_campaign(jet, stream, path):
    made = await jet.coordination(f"{stream.name}C", create=True)
    return made.leader("boss")


async def dead_letters(jet, stream, path):
    return jet.dead_letters(stream.name)


WORKS = pytest.mark.parametrize(
    ("work", "ends"),
    [
        (a_consumption, ("wait", "drain", "stop")),
        (a_processing, ("wait", "drain", "stop")),
        (a_worker, ("stop",)),
        (a_relay, ("wait",)),
        (a_campaign, ("wait", "stop")),
        (dead_letters, ("wait",)),
    ],
)


@WORKS
async def test_the_end_of_what_was_never_started_is_an_error(opened, name, tmp_path, work, ends):
    async with opened() as jet:
        made = await work(jet, await filled(jet, name, 1), tmp_path)
        for end in ends:
            with pytest.raises(js.NotStarted, match=r"was never started: use it in a `with` block"):
                await getattr(made, end)()


@pytest.mark.parametrize("kind", [a_worker, a_processing])
async def test_what_could_not_start_may_be_stopped(opened, name, tmp_path, kind):
    async with opened() as jet:
        work = await kind(jet, await filled(jet, name, 1), tmp_path)
        await jet.delete_stream(name)
        with pytest.raises((js.StreamNotFound, js.ConsumerNotFound)):
            await work.start()
        await work.stop()
