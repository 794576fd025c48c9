"""The log of the SDK, without any configuration or callback."""

from __future__ import annotations

import logging

import pytest

import js_async as js
from js_async.coordination import Coordination
from js_async.workers import DeadLetters, HandlerFailed, Reject, Retry, Worker
from tests._async.flow import eventually
from tests._async.scripted import scripted
from tests._async.streams import filled
from tests.logged import levels, texts
from twinstream.models import ConsumerConfig, StreamConfig, StreamSource, evolve
from twinstream.testing import FakePeer

POLICY = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
ONCE = Retry(attempts=2, first=0.01, factor=1)


@pytest.fixture
def all_levels(caplog):
    caplog.set_level(logging.DEBUG, "twinstream")
    return caplog


async def worked(jet, name, handler, count, **settings):
    """Return a worker that has ended after it gave up `count` messages."""
    consumer = ConsumerConfig(durable_name="c")
    worker = Worker(jet, name, consumer, handler, retry=ONCE, **settings)

    async def all_are_rejected():
        return worker.rejected == count

    async with worker:
        await eventually(all_are_rejected)
    return worker


async def test_a_handler_that_fails_at_every_message_is_logged(opened, name, caplog):
    caplog.set_level(logging.INFO, "twinstream")
    async with opened() as jet:
        await jet.create_stream(
            StreamConfig(name=name, subjects=[f"{name}.>"], retention="workqueue")
        )
        for number in range(3):
            await jet.publish(f"{name}.{number}", b"secret payload")

        async def handler(message):
            return message.data + 1

        await worked(jet, name, handler, 3)
    # A thread may work before the start is logged.
    assert sorted(levels(caplog, "worker")) == ["ERROR"] * 3 + ["INFO"] * 2 + ["WARNING"]
    given_up = [each for each in caplog.records if each.levelname == "ERROR"]
    assert {vars(each)["nats_seq"] for each in given_up} == {1, 2, 3}
    for each in given_up:
        assert "TypeError" in each.getMessage()
        given = vars(each)
        assert (given["nats_stream_name"], given["nats_consumer_name"], given["nats_delivery"]) == (
            name,
            "c",
            2,
        )
        assert given["nats_subject"] == f"{name}.{given['nats_seq'] - 1}"
    assert given_up[0].exc_info[0] is TypeError
    assert "test_logging.py" in logging.Formatter().formatException(given_up[0].exc_info)
    assert texts(caplog, "worker")[-1] == (
        f"{name}/c: the worker stopped, handled: 0, retried: 3, given up: 3"
    )
    assert "secret" not in caplog.text


async def test_a_callback_lowers_the_level_and_gets_the_same(opened, name, caplog):
    caplog.set_level(logging.INFO, "twinstream")
    got = []
    async with opened() as jet:
        await filled(jet, name, 1)

        async def handler(message):
            raise Reject("never")

        await worked(jet, name, handler, 1, on_report=got.append)
    assert [type(each) for each in got] == [HandlerFailed]
    assert levels(caplog, "worker") == ["WARNING"]


async def test_a_rejected_message_and_its_dead_letter_are_logged(opened, name, all_levels):
    async with opened() as jet:
        await filled(jet, name, 1)

        async def handler(message):
            raise Reject("never")

        await worked(jet, name, handler, 1, dead_letters=DeadLetters(jet, name))
    assert f"{name}: message 1 ({name}.0) was rejected and is stored as a dead letter" in texts(
        all_levels, "dead_letters"
    )


async def test_an_outage_is_one_warning_and_its_end_one_line(server_factory, caplog):
    caplog.set_level(logging.INFO, "twinstream")
    with server_factory() as server:
        async with js.connect(server.url, reconnect=POLICY) as connection:
            address = server.url.removeprefix("nats://")
            server.kill()

            async def is_lost():
                return not connection.is_connected

            async def came_back():
                return connection.is_connected and connection.stats.connects == 2

            await eventually(is_lost)
            server.restart()
            await eventually(came_back)
    found = texts(caplog, "connection")
    assert levels(caplog, "connection") == ["INFO", "WARNING", "INFO", "INFO"]
    assert found[0] == f"connected to {address}"
    assert found[1].startswith(f"disconnected from {address}: ")
    assert found[2].startswith(f"reconnected to {address} after ")
    assert found[3] == "the connection is closed"


async def test_attempts_to_reconnect_are_debug_records(server_factory, all_levels):
    with server_factory() as server:
        policy = js.ReconnectPolicy(wait=0.01, max_wait=0.02, attempts=2)
        async with js.connect(server.url, reconnect=policy) as connection:
            server.kill()

            async def is_closed():
                return connection.is_closed

            await eventually(is_closed)
    attempts = [each for each in all_levels.records if "attempt" in each.getMessage()]
    assert [each.levelname for each in attempts] == ["DEBUG", "DEBUG"]
    assert levels(all_levels, "connection")[-1] == "ERROR"
    assert "gave up after 2 rounds" in texts(all_levels, "connection")[-1]


async def test_neither_passwords_nor_urls_with_them_are_logged(server_factory, all_levels):
    config = "authorization { user: ann, password: s3cret }"
    with server_factory(config=config) as server:
        url = server.url.replace("nats://", "nats://ann:s3cret@")
        async with js.connect(url, reconnect=POLICY) as connection:
            server.restart()

            async def came_back():
                return connection.is_connected and connection.stats.connects == 2

            await eventually(came_back)
    assert len(texts(all_levels, "connection")) >= 4
    assert "s3cret" not in all_levels.text
    assert "s3cret" not in repr([vars(each) for each in all_levels.records])


async def test_a_slow_consumer_is_logged(server, name, caplog):
    async with js.connect(server.url) as connection:
        subscription = await connection.subscribe(name, max_buffered=1)
        for _ in range(3):
            await connection.publish(name, b"x")
        await connection.flush()
        assert subscription.dropped == 2
    assert texts(caplog, "connection", logging.WARNING)[0] == (
        f"slow consumer of {name}: 1 messages dropped so far"
    )


async def test_callbacks_that_fail_are_logged_with_their_traceback(server, name, caplog):
    def on_event(event):
        raise LookupError("event")

    def on_call(call):
        raise LookupError("call")

    async with js.connect(server.url, on_event=on_event, on_call=on_call) as connection:
        await connection.jetstream().create_stream(StreamConfig(name=name))
    errors = [each for each in caplog.records if each.levelname == "ERROR"]
    assert {each.getMessage() for each in errors} == {
        "on_event raised LookupError('event')",
        "on_call raised LookupError('call')",
    }
    assert all(each.exc_info[0] is LookupError for each in errors)


async def test_calls_and_pulls_are_debug_records(opened, name, all_levels):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        [message] = await consumer.fetch(1, timeout=60)
        await message.ack()
        with pytest.raises(js.StreamNotFound):
            await jet.get_stream(f"{name}-none")
        async with consumer.messages(max_messages=7) as messages:
            assert await messages.next(timeout=0.1) is None
    calls = texts(all_levels, "api")
    assert any(f"STREAM.CREATE.{name}: done in " in each for each in calls)
    assert any(f"STREAM.INFO.{name}-none: failed in " in each for each in calls)
    pulls = [each for each in all_levels.records if "pull of" in each.getMessage()]
    assert [each.getMessage()[:9] for each in pulls] == ["pull of 1", "pull of 7"]
    assert {vars(each)["nats_consumer_name"] for each in pulls} == {"c"}


async def test_a_consumer_that_is_created_again_is_logged(opened, name, caplog):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.messages(on_deleted="recreate") as messages:
            await (await messages.next(timeout=60)).ack()
            await stream.delete_consumer("c")
            # From its start, as its policy says.
            assert (await messages.next(timeout=60)).metadata.stream_seq == 1
    assert texts(caplog, "consumer", logging.WARNING)[-1] == (
        f"{name}/c: c was gone and was created again"
    )


async def test_a_filter_that_matches_no_subject_is_logged(opened, name, caplog):
    """If the subjects of the stream are at hand, and decide what the stream has."""
    wrong = ConsumerConfig(durable_name="c", filter_subject=f"{name}o.*")
    two = ConsumerConfig(durable_name="d", filter_subjects=[f"{name}.a", f"{name}x.b"])

    async def warned():
        found = texts(caplog, "consumer", logging.WARNING)
        caplog.clear()
        return found

    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        text = (
            f"{name}/c: the stream captures nothing on {name}o.*, so no new message matches:"
            f" compare the consumer's filters with the stream's subjects {name}.>"
        )
        for call in (
            stream.create_consumer,
            stream.update_consumer,
            stream.create_or_update_consumer,
        ):
            await call(wrong)
            assert await warned() == [text]
        await stream.create_consumer(two)
        [text] = await warned()
        assert f"captures nothing on {name}x.b, so" in text
        await stream.create_consumer(ConsumerConfig(durable_name="e", filter_subject=f"{name}.*"))
        # These calls do not know the subjects.
        await jet.update_consumer(name, wrong)
        await jet.bind_stream(name).update_consumer(wrong)
        assert await warned() == []
        # The handle knows subjects that were changed since.
        old = await jet.get_stream(name)
        await stream.change(lambda config: evolve(config, subjects=[f"{name}.>", f"{name}o.*"]))
        await old.update_consumer(wrong)
        assert await warned() == []


async def test_a_filter_of_a_stream_that_copies_is_not_logged(opened, name, caplog):
    wrong = ConsumerConfig(durable_name="c", filter_subject="orders.*")
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        for number, settings in enumerate(
            (
                {"mirror": StreamSource(name=name)},
                {"sources": [StreamSource(name=name)], "subjects": [f"{name}x"]},
            )
        ):
            stream = await jet.create_stream(StreamConfig(name=f"{name}-{number}", **settings))
            await stream.create_consumer(wrong)
    assert texts(caplog, "consumer", logging.WARNING) == []


async def test_work_that_an_error_ended_is_logged_at_once(opened, name, caplog):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))

        async def handler(message):
            raise LookupError("not my day")

        consuming = consumer.consume(handler)
        await consuming.start()

        async def is_logged():
            return texts(caplog, "consumer", logging.ERROR)

        [text] = await eventually(is_logged)
        with pytest.raises(LookupError):
            await consuming.stop()
    assert text.endswith("was ended by an error: LookupError('not my day')")


async def test_a_lost_lock_is_logged_and_so_is_a_callback_that_fails(opened, name, caplog):
    def on_lost(lease):
        raise LookupError(lease.name)

    caplog.set_level(logging.INFO, "twinstream")
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        lock = coordination.lock("job", ttl=2, on_lost=on_lost)
        lease = await lock.acquire(timeout=60)
        await jet.delete_stream(name)
        assert await lease.wait_lost(timeout=30)

        async def is_logged():
            return levels(caplog, "coordination")[-1:] == ["ERROR"]

        await eventually(is_logged)
    lost, failed = texts(caplog, "coordination", logging.INFO)[-2:]
    assert lost.startswith("lost: job (token ")
    assert failed == "on_lost raised LookupError('job')"


@pytest.mark.parametrize("way", ["one", "many"])
async def test_a_publish_that_is_sent_again_is_logged_once(way, caplog):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(2):
            peer.message(peer.expect(r"^H?PUB orders ").reply, status="503")
        peer.answer(peer.expect(r"^H?PUB orders "), {"stream": "S", "seq": 7})

    async with scripted(script) as connection:
        jet = connection.jetstream()
        if way == "one":
            await jet.publish("orders", b"x", retry_wait=0.01)
        else:
            requests = [js.PublishRequest(subject="orders", data=b"x")]
            outcomes = jet.publish_many(requests, retry_wait=0.01)
            assert [each.seq async for each in outcomes] == [7]
    [text] = texts(caplog, "publisher", logging.WARNING)
    assert text.startswith("publishing: orders: ")
    assert text.endswith("; trying again")
