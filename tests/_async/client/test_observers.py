"""Observers: what they see of each thing that a connection does, and that they disturb nothing."""

from __future__ import annotations

import pytest

import js_async as js
from js_async.coordination import Coordination
from js_async.exactly_once import Processing
from js_async.fast_ingest import FastIngest
from js_async.workers import DeadLetters, Reject, Retry, Worker
from tests._async.flow import eventually
from tests.logged import raised
from twinstream.core.observe import process_wide
from twinstream.models import ConsumerConfig, ObjectStoreConfig, StreamConfig
from twinstream.observe import Observer, Received, Redelivered

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05)


class Recorder(Observer):
    """Records what it sees, and adds a header to each message."""

    def __init__(self):
        self.begun = []
        self.ended = []
        self.events = []
        self.gauges = None

    def opened(self, gauges):
        self.gauges = gauges

    def begin(self, operation):
        self.begun.append((operation.kind, operation.name, operation.subject))
        operation.added["Trace"] = "observed"
        return operation.kind

    def end(self, operation, token):
        assert token == operation.kind
        assert operation.seconds >= 0
        self.ended.append((operation.kind, operation.name, operation.outcome))

    def note(self, event):
        self.events.append(event)

    def kinds(self, *kinds):
        """Return the ended operations of these kinds."""
        return [each for each in self.ended if each[0] in kinds]


@pytest.fixture
def seen():
    return Recorder()


async def created(jet, name, **config):
    return await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **config))


async def test_messages_from_publish_to_acknowledgement(server, name, seen):
    async with js.connect(server.url, name="shop", observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        await jet.publish(f"{name}.1", b"a", headers={"Kept": "1"})
        await jet.publish(f"{name}.2", b"b", headers={"trace": "own"})
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        first, second = await consumer.fetch(2, timeout=10)
        assert dict(first.headers) == {"Kept": "1", "Trace": "observed"}
        # A header of the program is not replaced, whatever its case.
        assert dict(second.headers) == {"trace": "own"}
        await first.in_progress()
        await first.double_ack()
        await second.nak()
        again = await consumer.next(timeout=60)
        await again.term("no")
        assert await consumer.next(timeout=0.01) is None
        # The acknowledgement is sent before the response to the next request.
        await consumer.info()
    assert seen.ended[0] == ("connect", "connect", None)
    assert seen.kinds("publish") == [("publish", "publish", None)] * 2
    assert seen.kinds("receive") == [
        ("receive", "fetch", None),
        ("receive", "next", None),
        ("receive", "next", None),
    ]
    assert seen.kinds("ack", "nak", "term", "progress") == [
        ("progress", "in_progress", None),
        ("ack", "double_ack", None),
        ("nak", "nak", None),
        ("term", "term", None),
    ]
    assert [(each.seq, each.attempt) for each in seen.events if type(each) is Redelivered] == [
        (2, 2)
    ]
    assert seen.kinds("request")[:1] == [("request", "api", None)]
    assert len(seen.begun) == len(seen.ended)


async def test_iterations_note_their_messages(server, name, seen):
    async with js.connect(server.url, observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        for number in range(3):
            await jet.publish(f"{name}.{number}")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.messages() as messages:
            assert repr(messages).startswith("<Messages ")
            await (await messages.next(timeout=60)).ack()
            async for message in messages:
                await message.ack()
                if message.seq == 3:
                    break
        async with stream.ordered() as ordered:
            assert (await ordered.next(timeout=60)).seq == 1
    received = [each.subject for each in seen.events if type(each) is Received]
    assert received == [f"{name}.0", f"{name}.1", f"{name}.2", f"{name}.0"]


async def test_messages_that_are_sent_without_waiting(server, name, seen):
    async with js.connect(server.url, observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name, allow_atomic=True, allow_batched=True)
        sent = [(f"{name}.{number}", b"x") for number in range(3)]
        async with jet.publish_many(sent) as outcomes:
            assert [each.seq async for each in outcomes] == [1, 2, 3]
        async with jet.publisher() as publisher:
            assert (await (await publisher.send(f"{name}.4")).result()).seq == 4
        batch = jet.atomic_batch()
        await batch.add(f"{name}.5")
        await batch.add(f"{name}.6")
        await batch.commit()
        async with FastIngest(jet, name, [(f"{name}.7", b"x")]) as ingest:
            assert len([each async for each in ingest]) == 1
        for seq in range(1, 8):
            assert (await stream.get_message(seq)).headers["Trace"] == "observed"
    assert seen.kinds("publish") == [
        *[("publish", "publish_many", None)] * 3,
        ("publish", "publisher", None),
        ("publish", "atomic_batch", None),
    ]
    assert seen.kinds("create") == [
        ("create", "atomic_batch", None),
        ("create", "atomic_batch", None),
        ("create", "fast_ingest", None),
    ]
    assert len(seen.begun) == len(seen.ended)


async def test_handlers_and_their_outcomes(server, name, seen):
    async def handler(message):
        if message.data == b"bad":
            raise Reject("never")
        if message.data == b"late" and message.num_delivered == 1:
            raise ValueError("not yet")

    async with js.connect(server.url, observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        await created(jet, name)
        for data in (b"good", b"late", b"bad"):
            await jet.publish(f"{name}.1", data)
        letters = DeadLetters(jet, name)
        config, retry = ConsumerConfig(durable_name="w"), Retry(attempts=3, first=0.01)

        async def all_done():
            return worker.handled == 2 and worker.rejected == 1

        worker = Worker(jet, name, config, handler, retry=retry, dead_letters=letters)
        async with worker:
            await eventually(all_done)
    outcomes = [outcome for _, name, outcome in seen.kinds("handle") if name == "worker"]
    assert sorted(outcomes) == ["acknowledged", "acknowledged", "given up", "retried"]
    events = [type(each).__name__ for each in seen.events]
    assert events.count("DeadLettered") == 1
    assert events.count("Redelivered") == 1
    assert events.count("PullSent") >= 1


async def test_consume_and_process_are_handled_too(server, name, seen):
    async with js.connect(server.url, observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        await jet.create_stream(StreamConfig(name=f"{name}-out", subjects=[f"out.{name}.>"]))
        await jet.publish(f"{name}.1", b"a")

        async def handler(message):
            await message.ack()

        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.consume(handler) as consuming:

            async def is_handled():
                return consuming.handled == 1

            await eventually(is_handled)

        async def work(message):
            return js.PublishRequest(f"out.{name}.1", message.data)

        config = ConsumerConfig(durable_name="p")
        await stream.create_consumer(config)
        async with Processing(jet, name, "p", work, into=f"{name}-out", by="subject") as processing:

            async def is_done():
                return processing.done == 1

            await eventually(is_done)
    assert seen.kinds("handle") == [
        ("handle", "consume", "acknowledged"),
        ("handle", "process", "acknowledged"),
    ]


async def test_core_watches_objects_and_locks(server, name, seen):
    async with js.connect(server.url, observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        async with connection.subscribe(name) as subscription:
            await connection.publish(name, b"x")
            message = await subscription.next(timeout=60)
            assert dict(message.headers) == {"Trace": "observed"}
        with pytest.raises(js.NoResponders):
            await connection.request(f"{name}.none", timeout=10)
        bucket = await jet.create_key_value(js.KeyValueConfig(bucket=name))
        async with bucket.watch() as watch:
            assert [each async for each in watch.initial()] == []
        store = await jet.create_object_store(ObjectStoreConfig(bucket=f"{name}o"))
        await store.put("o", b"content")
        assert await store.get_bytes("o") == b"content"
        coordination = Coordination(jet, f"{name}-locks", create=True)
        async with await coordination.lock("l").acquire(timeout=60):
            assert ("lock", "lock", None) not in seen.ended
    assert seen.kinds("watch", "transfer", "lock") == [
        ("watch", "watch", None),
        ("transfer", "put", None),
        ("transfer", "get", None),
        ("lock", "lock", None),
    ]
    assert ("publish", "core_publish", None) in seen.ended
    assert ("request", "core_request", None) in seen.ended


async def test_an_outage_is_seen(server_factory, seen):
    server = server_factory()
    async with js.connect(server.url, reconnect=QUICK, observers=[seen]) as connection:
        server.restart()

        async def is_back():
            return connection.stats.connects == 2

        await eventually(is_back)
    assert [each for each in seen.ended if "connect" in each[0]] == [
        ("connect", "connect", None),
        ("reconnect", "reconnect", None),
    ]
    events = [type(each).__name__ for each in seen.events]
    assert events == ["Connected", "Disconnected", "Connected", "Closed"]


async def test_gauges(server, name, seen):
    async with js.connect(server.url, observers=[seen]) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        for number in range(5):
            await jet.publish(f"{name}.{number}")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.messages() as messages:
            await (await messages.next(timeout=60)).ack()

            async def all_arrived():
                return messages.buffered == 4

            await eventually(all_arrived)
            found = {each.name: each for each in seen.gauges()}
            assert (found["buffered_messages"].value, found["pending_acks"].value) == (4, 0)
            assert found["buffered_messages"].stream_name == name
            assert found["buffered_messages"].consumer_name == "c"
            assert found["seconds_since_message"].value >= 0
            assert found["open_requests"].value == 0
        async with jet.publisher():
            assert {each.name: each.value for each in seen.gauges()}["in_flight"] == 0


async def test_an_observer_that_fails_is_left_out(server, name, seen, caplog):
    class Failing(Observer):
        calls = 0

        def begin(self, operation):
            Failing.calls += 1
            raise ValueError("first")

        def end(self, operation, token):
            raise AssertionError("it was left out")

    async with js.connect(server.url, observers=[Failing(), seen]) as connection:
        jet = connection.jetstream(timeout=60)
        await created(jet, name)
        assert (await jet.publish(f"{name}.1")).seq == 1
    text = "observer Failing, which is left out from now on, raised ValueError('first')"
    assert raised(caplog) == [text]
    assert Failing.calls == 1
    assert seen.kinds("publish") == [("publish", "publish", None)]


async def test_observers_of_the_process_and_of_an_open_connection(server, name, seen):
    def make():
        return seen

    process_wide.add(make)
    try:
        async with js.connect(server.url) as connection:
            await created(connection.jetstream(timeout=60), name)
    finally:
        process_wide.remove(make)
    assert ("request", "api", None) in seen.ended
    before = len(seen.ended)
    later = Recorder()
    async with js.connect(server.url) as connection:
        connection.observe(later)
        await connection.jetstream(timeout=60).publish(f"{name}.1")
    assert later.ended == [("publish", "publish", None)]
    assert len(seen.ended) == before


async def test_only_observers_are_accepted(server):
    for wrong in ([print], [object()]):
        with pytest.raises(js.BadArgument, match="must be an instance of a subclass of Observer"):
            await js.connect(server.url, observers=wrong)
    with pytest.raises(js.BadArgument, match="observers must be a list"):
        await js.connect(server.url, observers=Observer())
