"""The repr of objects, and payloads as text and JSON."""

from __future__ import annotations

import pytest

import js_async as js
from js_async.workers import Worker
from tests._async.flow import eventually
from tests._async.streams import filled
from twinstream.errors import WrongHandler
from twinstream.models import AckPolicy, ConsumerConfig

EXPLICIT = ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT)


async def acked(message):
    await message.ack()


async def test_objects_show_what_they_are_and_how_far(opened, name):
    async with opened() as jet:
        assert repr(jet).startswith("<JetStream $JS.API at ")
        stream = await filled(jet, name, 3)
        consumer = await stream.create_consumer(EXPLICIT)
        messages = consumer.messages()
        assert repr(messages) == f"<Messages {name}/c: 0 buffered>"
        async with messages:
            await (await messages.next(timeout=60)).ack()

            async def rest_is_here():
                return messages.buffered == 2

            await eventually(rest_is_here)
            assert repr(messages) == f"<Messages {name}/c: 2 buffered>"
        assert repr(messages) == f"<Messages {name}/c: ended>"
        async with stream.push_messages(ConsumerConfig(durable_name="p")) as pushed:
            assert repr(pushed).startswith(f"<PushMessages {name}/p: ")
        ordered = stream.ordered()
        assert repr(ordered) == f"<OrderedMessages {name}: 0 buffered>"
        async with jet.events(stream_name=name) as events:
            assert repr(events).startswith(f"<Events $JS.EVENT.*.STREAM.*.{name}, ")
        consuming = consumer.consume(acked, stop_after=2)
        async with consuming:
            await consuming.wait(timeout=30)
        assert repr(consuming) == f"<Consuming c of {name}: stopped>"
        worker = Worker(jet, name, "c", acked)
        assert repr(worker) == f"<Worker c of {name}: not started>"
        with pytest.warns(RuntimeWarning, match="was never started"):
            await worker.stop()
        async with jet.publisher() as publisher:
            assert repr(publisher) == "<Publisher: 0 in flight>"
        assert repr(publisher) == "<Publisher: 0 in flight, closed>"
        names = stream.consumer_names()
        assert repr(names) == "<ConsumerNames: 0 buffered, more pages to come>"
        assert [found async for found in names]
        assert repr(names) == "<ConsumerNames: 0 buffered, no more pages>"
        async with stream.read() as read:
            assert repr(read) == f"<StreamRead {name}: at sequence 0>"
            assert len([message async for message in read]) == 3
            assert repr(read) == f"<StreamRead {name}: ended>"


async def fails(message):
    raise WrongHandler("it fails")


async def test_what_an_error_ended_shows_the_error(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(EXPLICIT)
        worker = Worker(jet, name, "c", fails)
        consuming = consumer.consume(fails)
        for each in (worker, consuming):
            await each.start()

            async def has_ended(each=each):
                return repr(each).endswith(": ended by WrongHandler>")

            await eventually(has_ended)
            with pytest.raises(WrongHandler):
                await each.stop()
            assert await has_ended()
            if each is worker:
                await jet.publish(f"{name}.x")


async def test_connections_show_their_subscriptions(server, name):
    async with js.connect(server.url) as connection:
        async with connection.subscribe(name) as subscription:
            assert repr(subscription) == f"<Subscription {name}: 0 buffered>"
        assert repr(subscription) == f"<Subscription {name}: ended>"
        assert repr(connection.events()) == "<ConnectionEvents: 0 unread>"


async def test_payloads_are_read_as_text_and_json(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(EXPLICIT)
        subject = f"{name}.x"
        async with connection.subscribe(subject) as subscription:
            for seq, data in enumerate((b'{"a": "\xc3\xa9"}', b"\xff", b"[" * 100_000), 1):
                await jet.publish(subject, data)
                of_core = await subscription.next(timeout=60)
                stored = await stream.get_message(seq)
                [pulled] = await consumer.fetch(1)
                for message in (of_core, stored, pulled):
                    if seq == 1:
                        assert message.text == '{"a": "é"}'
                        assert message.json() == {"a": "é"}
                        continue
                    with pytest.raises(js.BadPayload, match=f"{subject}: the payload is not JSON"):
                        message.json()
                    if seq == 2:
                        with pytest.raises(js.BadPayload, match="the payload is not UTF-8"):
                            assert message.text


async def test_the_handle_of_a_message_shows_whether_its_result_is_there(opened, name):
    async with opened() as jet:
        await filled(jet, name, 0)
        async with jet.publisher() as publisher:
            handle = await publisher.send(f"{name}.0")
            await handle.result()
            assert repr(handle) == f"<PublishHandle {name}.0: done>"
