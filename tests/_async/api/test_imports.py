"""A JetStream API that another account exports with one response for each request."""

from __future__ import annotations

import pytest
from attrs import frozen

from tests._async.buckets import bucket, listed
from tests.conftest import VERSION
from twinstream.errors import InvalidResponse
from twinstream.models import ConsumerConfig, ObjectStoreConfig, StreamConfig
from twinstream.testing import NatsServer

COUNT = 40
PREFIX = "JS.app.API"
LACKS = "response_type: stream"
EXPORTS = ("$JS.API.>", "$JS.ACK.>", "$KV.>", "$O.>", "p.>")


@frozen
class Account:
    """The URL of a user whose account imports the API, and the options of its JetStream."""

    url: str
    options: dict[str, str]


def imported(prefix):
    """Return the imports of an account, with the prefix of the API unless that is empty."""
    for subject in EXPORTS:
        to = ""
        if prefix and subject in {"$JS.API.>", "$KV.>"}:
            to = f', to: "{prefix}.{subject.removeprefix("$JS.API.")}"'
        yield f'{{service: {{account: APP, subject: "{subject}"}}{to}}}'


@pytest.fixture(scope="module", params=["", PREFIX], ids=["same subjects", "prefix"])
def server(request):
    """Return a user of an account that imports the API; the export has no `response_type`."""
    exports = ", ".join(f'{{service: "{each}"}}' for each in EXPORTS)
    config = f"""accounts {{
        APP: {{ jetstream: enabled, exports: [ {exports} ] }}
        OUT: {{
            users: [ {{user: out, password: pw}} ]
            imports: [ {", ".join(imported(request.param))} ]
        }}
    }}"""
    options = {"prefix": request.param} if request.param else {}
    with NatsServer(config, VERSION) as running:
        yield Account(running.url.replace("nats://", "nats://out:pw@"), options)


@pytest.fixture(autouse=True)
def no_second_answer(tuned):
    """Wait only a moment for the second response to a probe, which none of these servers sends."""
    tuned("second answer", 0.2)


async def filled(jet, name):
    """Return a stream with messages, and a consumer of it."""
    config = StreamConfig(name=name, subjects=[f"p.{name}.>"], allow_direct=True)
    stream = await jet.create_stream(config)
    for number in range(COUNT):
        await jet.publish(f"p.{name}.{number % 3}", b"%d" % number)
    return stream, await stream.create_consumer(ConsumerConfig(durable_name="c"))


async def test_single_calls_work(opened, server, name):
    async with opened(**server.options) as jet:
        made = await bucket(jet, name, history=5)
        assert await made.put("a", b"1") == 1
        assert await made.create("b", b"2") == 2
        assert await made.update("b", b"3", 2) == 3
        assert (await made.get("b")).value == b"3"
        _, consumer = await filled(jet, name)
        for number in range(3):
            [message] = await consumer.fetch(1, timeout=60)
            await message.ack()
            assert message.data == b"%d" % number


@pytest.mark.since("2.11")
async def test_ranges_are_read_one_by_one(opened, server, name):
    async with opened(**server.options) as jet:
        stream, _ = await filled(jet, name)
        async with stream.read() as reading:
            assert [message.data for message in [each async for each in reading]] == [
                b"%d" % number for number in range(COUNT)
            ]
        made = await bucket(jet, name, history=5)
        for number in range(5):
            await made.put("a", b"%d" % number)
        assert len(await made.history("a")) == 5
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        await store.put("large", b"x" * 400_000)
        assert await store.get_bytes("large") == b"x" * 400_000


@pytest.mark.since("2.11")
async def test_calls_for_several_responses_say_what_the_export_lacks(opened, server, name):
    async with opened(**server.options) as jet:
        made = await bucket(jet, name)
        for number in range(COUNT):
            await made.put(f"k{number}", b"1")
        store = await jet.create_object_store(ObjectStoreConfig(bucket=name, storage="memory"))
        for number in range(3):
            await store.put(f"o{number}", b"1")
        stream, consumer = await filled(jet, name)

        async def iterated():
            async with consumer.messages() as messages:
                while True:
                    await messages.next(timeout=30)

        async def ordered():
            async with stream.ordered() as messages:
                while True:
                    await messages.next(timeout=30)

        for several in (
            lambda: made.get_many(["k1", "k2"]),
            lambda: listed(made.keys()),
            stream.snapshot,
            lambda: consumer.fetch(10, timeout=30),
            iterated,
            ordered,
        ):
            with pytest.raises(InvalidResponse, match=LACKS):
                await several()


async def test_updates_are_not_silently_lost(opened, server, name):
    async with opened(**server.options) as jet:
        made = await bucket(jet, name)
        async with made.watch() as watch:
            assert [each async for each in watch.initial()] == []
            for number in range(5):
                await made.put("a", b"%d" % number)

            async def updates():
                while True:
                    await watch.next(timeout=30)

            with pytest.raises(InvalidResponse, match=LACKS):
                await updates()
        # The object stays usable.
        assert (await made.get("a")).value == b"4"
