"""How long calls wait: their own timeout, or that of their JetStream context."""

from __future__ import annotations

import inspect

import pytest

import js_async as js
from js_async.api.cluster import Cluster
from js_async.api.replicas import Replicas
from js_async.counters import Counters
from js_async.exactly_once import SubjectWriter
from js_async.groups import ElasticGroup, StaticGroup, StaticGroupConfig
from js_async.schedules import Schedule, Schedules
from js_async.workers import DeadLetters
from tests._async.flow import together
from tests._async.scripted import scripted
from tests.inside import api_of
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer

# Far longer than a test may take: a call that does not follow its context does not end in time.
LONG = 3600.0
SHORT = 0.05

STREAM = StreamConfig(name="S", subjects=["s"])
CONSUMER = ConsumerConfig(durable_name="c")
BUCKET = js.KeyValueConfig(bucket="B")
STORE = js.ObjectStoreConfig(bucket="B")
STATIC = StaticGroupConfig(max_members=1, members=["m"])
EVERY = Schedule.every(60)
STREAM_INFO = {
    "config": {"name": "S", "subjects": ["s"]},
    "state": {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0},
    "created": "2026-01-01T00:00:00Z",
}


def writer(jet):
    return SubjectWriter(jet, "S", check=False)


async def listed(listing):
    return [each async for each in listing]


CALLS = {
    "account_info": lambda jet, **t: jet.account_info(**t),
    "create_stream": lambda jet, **t: jet.create_stream(STREAM, **t),
    "update_stream": lambda jet, **t: jet.update_stream(STREAM, **t),
    "create_or_update_stream": lambda jet, **t: jet.create_or_update_stream(STREAM, **t),
    "get_stream": lambda jet, **t: jet.get_stream("S", **t),
    "stream_name_by_subject": lambda jet, **t: jet.stream_name_by_subject("s", **t),
    "delete_stream": lambda jet, **t: jet.delete_stream("S", **t),
    "streams": lambda jet, **t: listed(jet.streams(**t)),
    "stream_names": lambda jet, **t: listed(jet.stream_names(**t)),
    "create_consumer": lambda jet, **t: jet.create_consumer("S", CONSUMER, **t),
    "update_consumer": lambda jet, **t: jet.update_consumer("S", CONSUMER, **t),
    "create_or_update_consumer": lambda jet, **t: jet.create_or_update_consumer("S", CONSUMER, **t),
    "get_consumer": lambda jet, **t: jet.get_consumer("S", "c", **t),
    "delete_consumer": lambda jet, **t: jet.delete_consumer("S", "c", **t),
    "create_key_value": lambda jet, **t: jet.create_key_value(BUCKET, **t),
    "update_key_value": lambda jet, **t: jet.update_key_value(BUCKET, **t),
    "create_or_update_key_value": lambda jet, **t: jet.create_or_update_key_value(BUCKET, **t),
    "get_key_value": lambda jet, **t: jet.get_key_value("B", **t),
    "delete_key_value": lambda jet, **t: jet.delete_key_value("B", **t),
    "key_values": lambda jet, **t: listed(jet.key_values(**t)),
    "key_value_names": lambda jet, **t: listed(jet.key_value_names(**t)),
    "create_object_store": lambda jet, **t: jet.create_object_store(STORE, **t),
    "update_object_store": lambda jet, **t: jet.update_object_store(STORE, **t),
    "create_or_update_object_store": lambda jet, **t: jet.create_or_update_object_store(STORE, **t),
    "get_object_store": lambda jet, **t: jet.get_object_store("B", **t),
    "delete_object_store": lambda jet, **t: jet.delete_object_store("B", **t),
    "object_stores": lambda jet, **t: listed(jet.object_stores(**t)),
    "object_store_names": lambda jet, **t: listed(jet.object_store_names(**t)),
    "publish": lambda jet, **t: jet.publish("s", **t),
    "SubjectWriter.insert": lambda jet, **t: writer(jet).insert("s", **t),
    "SubjectWriter.update": lambda jet, **t: writer(jet).update("s", b"", 1, **t),
    "SubjectWriter.upsert": lambda jet, **t: writer(jet).upsert("s", **t),
    "Stream.info": lambda jet, **t: jet.bind_stream("S").info(**t),
    "Stream.info(confirmed)": lambda jet, **t: jet.bind_stream("S").info(confirmed=True, **t),
    "Stream.subjects": lambda jet, **t: listed(jet.bind_stream("S").subjects(**t)),
    "Stream.change": lambda jet, **t: jet.bind_stream("S").change(lambda config: config, **t),
    "Stream.seal": lambda jet, **t: jet.bind_stream("S").seal(**t),
    "Stream.purge": lambda jet, **t: jet.bind_stream("S").purge(**t),
    "Stream.delete": lambda jet, **t: jet.bind_stream("S").delete(**t),
    "Stream.get_message": lambda jet, **t: jet.bind_stream("S").get_message(1, **t),
    "Stream.get_message(direct)": lambda jet, **t: jet.bind_stream("S").get_message(
        1, direct=True, **t
    ),
    "Stream.get_last_message": lambda jet, **t: jet.bind_stream("S").get_last_message("s", **t),
    "Stream.get_next_message": lambda jet, **t: jet.bind_stream("S").get_next_message(**t),
    "Stream.delete_message": lambda jet, **t: jet.bind_stream("S").delete_message(1, **t),
    "Stream.create_consumer": lambda jet, **t: jet.bind_stream("S").create_consumer(CONSUMER, **t),
    "Stream.update_consumer": lambda jet, **t: jet.bind_stream("S").update_consumer(CONSUMER, **t),
    "Stream.create_or_update_consumer": lambda jet, **t: jet.bind_stream(
        "S"
    ).create_or_update_consumer(CONSUMER, **t),
    "Stream.get_consumer": lambda jet, **t: jet.bind_stream("S").get_consumer("c", **t),
    "Stream.delete_consumer": lambda jet, **t: jet.bind_stream("S").delete_consumer("c", **t),
    "Stream.consumers": lambda jet, **t: listed(jet.bind_stream("S").consumers(**t)),
    "Stream.consumer_names": lambda jet, **t: listed(jet.bind_stream("S").consumer_names(**t)),
    "Replicas.step_down": lambda jet, **t: jet.bind_stream("S").replicas.step_down(**t),
    "Replicas.remove": lambda jet, **t: jet.bind_stream("S").replicas.remove("n", **t),
    "Replicas.evacuate": lambda jet, **t: jet.bind_stream("S").replicas.evacuate("n", **t),
    "Replicas.cancel_move": lambda jet, **t: jet.bind_stream("S").replicas.cancel_move(**t),
    "Consumer.info": lambda jet, **t: jet.bind_consumer("S", "c").info(**t),
    "Consumer.change": lambda jet, **t: jet.bind_consumer("S", "c").change(lambda old: old, **t),
    "Consumer.delete": lambda jet, **t: jet.bind_consumer("S", "c").delete(**t),
    "Consumer.pause": lambda jet, **t: jet.bind_consumer("S", "c").pause(60, **t),
    "Consumer.resume": lambda jet, **t: jet.bind_consumer("S", "c").resume(**t),
    "Consumer.reset": lambda jet, **t: jet.bind_consumer("S", "c").reset(**t),
    "Consumer.unpin": lambda jet, **t: jet.bind_consumer("S", "c").unpin("g", **t),
    "Consumer.step_down": lambda jet, **t: jet.bind_consumer("S", "c").step_down(**t),
    "Cluster.step_down": lambda jet, **t: jet.cluster.step_down(**t),
    "Cluster.remove_server": lambda jet, **t: jet.cluster.remove_server("n", **t),
    "Cluster.evacuate_server": lambda jet, **t: jet.cluster.evacuate_server("n", **t),
    "Cluster.purge_account": lambda jet, **t: jet.cluster.purge_account("A", **t),
    "Cluster.move_stream": lambda jet, **t: jet.cluster.move_stream("A", "S", server="n", **t),
    "Cluster.cancel_move": lambda jet, **t: jet.cluster.cancel_move("A", "S", **t),
    "Counters.add": lambda jet, **t: Counters(jet, "S").add("s", **t),
    "Counters.get": lambda jet, **t: Counters(jet, "S").get("s", **t),
    "Counters.reset": lambda jet, **t: Counters(jet, "S").reset("s", **t),
    "Schedules.add": lambda jet, **t: Schedules(jet, "S").add("s", EVERY, "t", **t),
    "Schedules.get": lambda jet, **t: Schedules(jet, "S").get("s", **t),
    "Schedules.cancel": lambda jet, **t: Schedules(jet, "S").cancel("s", **t),
    "KeyValue.get": lambda jet, **t: jet.bind_key_value("B").get("k", **t),
    "KeyValue.entry": lambda jet, **t: jet.bind_key_value("B").entry("k", **t),
    "KeyValue.put": lambda jet, **t: jet.bind_key_value("B").put("k", b"", **t),
    "KeyValue.create": lambda jet, **t: jet.bind_key_value("B").create("k", b"", **t),
    "KeyValue.update": lambda jet, **t: jet.bind_key_value("B").update("k", b"", 1, **t),
    "KeyValue.delete": lambda jet, **t: jet.bind_key_value("B").delete("k", **t),
    "KeyValue.purge": lambda jet, **t: jet.bind_key_value("B").purge("k", **t),
    "KeyValue.status": lambda jet, **t: jet.bind_key_value("B").status(**t),
    "KeyValue.change": lambda jet, **t: jet.bind_key_value("B").change(lambda config: config, **t),
    "ObjectStore.put": lambda jet, **t: jet.bind_object_store("B").put("a", b"", **t),
    "ObjectStore.get_bytes": lambda jet, **t: jet.bind_object_store("B").get_bytes("a", **t),
    "ObjectStore.get_file": lambda jet, **t: jet.bind_object_store("B").get_file("a", "a", **t),
    "ObjectStore.info": lambda jet, **t: jet.bind_object_store("B").info("a", **t),
    "ObjectStore.delete": lambda jet, **t: jet.bind_object_store("B").delete("a", **t),
    "ObjectStore.update_meta": lambda jet, **t: jet.bind_object_store("B").update_meta("a", **t),
    "ObjectStore.add_bucket_link": lambda jet, **t: jet.bind_object_store("B").add_bucket_link(
        "a", "C", **t
    ),
    "ObjectStore.status": lambda jet, **t: jet.bind_object_store("B").status(**t),
    "ObjectStore.change": lambda jet, **t: jet.bind_object_store("B").change(
        lambda config: config, **t
    ),
    "ObjectStore.seal": lambda jet, **t: jet.bind_object_store("B").seal(**t),
    "DeadLetters.create": lambda jet, **t: DeadLetters(jet, "S").create(**t),
    "DeadLetters.get": lambda jet, **t: DeadLetters(jet, "S").get(1, **t),
    "DeadLetters.discard": lambda jet, **t: DeadLetters(jet, "S").discard(1, **t),
    "StaticGroup.create": lambda jet, **t: StaticGroup(jet, "S", "g").create(STATIC, **t),
    "StaticGroup.info": lambda jet, **t: StaticGroup(jet, "S", "g").info(**t),
    "StaticGroup.active_members": lambda jet, **t: StaticGroup(jet, "S", "g").active_members(**t),
    "StaticGroup.step_down": lambda jet, **t: StaticGroup(jet, "S", "g").step_down("m", **t),
    "StaticGroup.delete": lambda jet, **t: StaticGroup(jet, "S", "g").delete(**t),
    "ElasticGroup.add_members": lambda jet, **t: ElasticGroup(jet, "S", "g").add_members("m", **t),
    "ElasticGroup.delete": lambda jet, **t: ElasticGroup(jet, "S", "g").delete(**t),
}

# Calls that have no default of the context: what they wait for is no answer of the server, or they
# are made of several calls.
OWN = {
    "JetStream.range_reader",  # progress of a read
    "JetStream.events",
    "JetStream.coordination",
    "JetStream.bind_stream",
    "JetStream.bind_key_value",
    "JetStream.bind_object_store",
    "JetStream.bind_consumer",
    "Stream.read",
    "Stream.snapshot",
    "Stream.ordered",  # reads on without limit
    "Stream.push_messages",
    "Stream.bind_consumer",
    "Consumer.fetch",  # messages, which may never come
    "Consumer.next",
    "Consumer.messages",
    "Consumer.consume",
    "KeyValue.keys",  # as long as there is progress
    "KeyValue.history",
    "KeyValue.get_many",
    "KeyValue.at",
    "KeyValue.diff",
    "KeyValue.delete_many",
    "KeyValue.purge_deletes",
    "KeyValue.watch",
    "KeyValue.cached",
    "KeyValue.typed",
    "JetStream.typed",
    "Stream.typed",
    "Consumer.typed",
    "KeyValue.with_codecs",
    "ObjectStore.get",
    "ObjectStore.list",
    "ObjectStore.sweep",
    "ObjectStore.watch",
    "Counters.list",  # until there is no progress
    "Schedules.list",
    "DeadLetters.collect",
    "DeadLetters.letters",
    "DeadLetters.start",  # the life cycle of background work
    "DeadLetters.stop",
    "DeadLetters.run",
    "ElasticGroup.worker",  # nothing is sent
    "StaticGroup.worker",
    "Cluster.rescue",  # as many answers as come
}


def silent(peer: FakePeer) -> None:
    peer.handshake(version="2.15.0")
    peer.until_left(timeout=60)


@pytest.mark.parametrize("call", CALLS)
async def test_calls_end_with_the_timeout_of_their_context(call):
    async with scripted(silent, request_timeout=LONG) as connection:
        with pytest.raises((js.RequestTimeout, js.OutcomeUnknown)):
            await CALLS[call](connection.jetstream(timeout=SHORT))
        with pytest.raises((js.RequestTimeout, js.OutcomeUnknown)):
            await CALLS[call](connection.jetstream(timeout=LONG), timeout=SHORT)


OWNERS = [
    js.JetStream,
    js.Stream,
    js.Consumer,
    Replicas,
    Cluster,
    js.KeyValue,
    js.ObjectStore,
    Counters,
    Schedules,
    SubjectWriter,
    DeadLetters,
    StaticGroup,
    ElasticGroup,
]


@pytest.mark.parametrize("owner", OWNERS)
def test_public_calls_have_a_timeout_with_the_contexts_default(owner):
    for name, value in inspect.getmembers(owner, callable):
        full = f"{owner.__name__}.{name}"
        if name.startswith("_") or full in OWN:
            continue
        found = inspect.signature(value).parameters.get("timeout")
        assert found is not None, f"{full} takes no timeout"
        assert found.default is None, f"{full} has a default of its own"


async def test_acknowledgements_are_confirmed_within_the_timeout_of_their_context():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(len(words) + 1):
            pull = peer.expect_pull()
            peer.deliver(pull, 1)
        peer.until_left(timeout=60)

    words = {
        "double_ack": lambda message, consumer: message.double_ack(),
        "nak": lambda message, consumer: message.nak(confirm=True),
        "term": lambda message, consumer: message.term(confirm=True),
        "in_progress": lambda message, consumer: message.in_progress(confirm=True),
        "an explicit one": lambda message, consumer: message.double_ack(timeout=SHORT),
    }
    async with scripted(script, request_timeout=LONG) as connection:
        consumer = connection.jetstream(timeout=SHORT).bind_consumer("S", "c")
        for word in words.values():
            message = await consumer.next(timeout=30)
            with pytest.raises(js.RequestTimeout, match="not confirmed"):
                await word(message, consumer)
        message = await consumer.next(timeout=30)
        assert await consumer.double_ack([message]) == [message]


class Unconfirmed:
    """A transport on which no acknowledgement is confirmed. It records the timeout of each."""

    def __init__(self, transport):
        self._transport = transport
        self.waits = []

    def __getattr__(self, name):
        return getattr(self._transport, name)

    async def ask(self, subject, headers, payload, deadline, **options):
        if subject.startswith("$JS.ACK"):
            self.waits.append(deadline.remaining())
            raise js.RequestTimeout("not confirmed, by the test")
        return await self._transport.ask(subject, headers, payload, deadline, **options)


async def not_confirmed(message):
    with pytest.raises(js.RequestTimeout, match="not confirmed"):
        await message.double_ack()


async def test_iterations_hand_the_timeout_of_their_context_on(opened, name):
    """Each message uses the timeout of the context that its iteration belongs to."""
    async with opened() as own:
        transport = Unconfirmed(api_of(own).transport)
        jet = js.JetStream(transport, timeout=777)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        for _ in range(3):
            await jet.publish(name)
        await not_confirmed(await consumer.next())
        for message in await consumer.fetch(1):
            await not_confirmed(message)
        async with consumer.messages() as messages:
            await not_confirmed(await messages.next())
        async with stream.ordered() as messages:
            await not_confirmed(await messages.next())
        async with stream.push_messages(ConsumerConfig(ack_policy="none")) as messages:
            await not_confirmed(await messages.next())
        assert [round(wait) for wait in transport.waits] == [777] * 5


async def test_nanoseconds_are_refused_with_a_hint():
    refused = pytest.raises(
        js.BadArgument, match=r"which is 158 years.* is this 5 s in nanoseconds"
    )
    async with scripted(silent) as connection:
        jet = connection.jetstream()
        consumer = jet.bind_consumer("S", "c")
        waits = {
            "fetch": lambda jet, **t: consumer.fetch(1, **t),
            "next": lambda jet, **t: consumer.next(**t),
            "snapshot": lambda jet, timeout: jet.bind_stream("S").snapshot(idle_timeout=timeout),
            "request": lambda jet, **t: connection.request("s", **t),
        }
        for call in (*CALLS.values(), *waits.values()):
            with refused:
                await call(jet, timeout=5_000_000_000)


async def test_streams_are_created_or_updated_by_several_clients_at_once(opened, name):
    async with opened() as jet:
        for round in range(15):
            this = f"{name}-{round}"

            def writes(limit, this=this):
                config = StreamConfig(name=this, subjects=[this], max_msgs=limit)
                return lambda: jet.create_or_update_stream(config)

            streams = await together(*[writes(limit) for limit in range(1, 5)])
            # An answer may show what another client has written since.
            assert {stream.cached_info.config.max_msgs for stream in streams} <= {1, 2, 3, 4}
            await jet.delete_stream(this)


async def test_consumers_are_created_or_updated_by_several_clients_at_once(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        for round in range(15):

            def writes(limit, this=f"c{round}"):
                config = ConsumerConfig(durable_name=this, max_ack_pending=limit)
                return lambda: stream.create_or_update_consumer(config)

            consumers = await together(*[writes(limit) for limit in range(1, 5)])
            found = [each.cached_info.config.max_ack_pending for each in consumers]
            assert set(found) <= {1, 2, 3, 4}


async def test_an_update_without_an_answer_is_tried_again():
    """Clusters do not answer updates that they receive while the stream is created."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(r"STREAM\.UPDATE\.S")
        peer.answer(peer.expect(r"STREAM\.UPDATE\.S"), STREAM_INFO)
        peer.until_left(timeout=30)

    async with scripted(script) as connection:
        stream = await connection.jetstream(timeout=2).create_or_update_stream(STREAM)
        assert stream.cached_info.config.subjects == ["s"]


@pytest.mark.since("2.12")
async def test_replicated_streams_are_created_or_updated_by_several_at_once(cluster, name):
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=40)

        def writes(limit):
            config = StreamConfig(name=name, subjects=[name], max_msgs=limit, num_replicas=3)
            return lambda: jet.create_or_update_stream(config)

        streams = await together(*[writes(limit) for limit in range(1, 5)])
        assert {stream.cached_info.config.max_msgs for stream in streams} <= {1, 2, 3, 4}


async def test_concurrent_creation_and_deletion_of_a_stream_is_retried():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for what, error in (
            ("UPDATE", (404, 10059, "stream not found")),
            ("CREATE", (400, 10058, "stream name already in use with a different configuration")),
            ("UPDATE", (404, 10059, "stream not found")),
            ("CREATE", None),
        ):
            request = peer.expect(rf"STREAM\.{what}\.S")
            if error is None:
                peer.answer(request, STREAM_INFO)
            else:
                code, err_code, description = error
                peer.answer(
                    request,
                    {"error": {"code": code, "err_code": err_code, "description": description}},
                )

    async with scripted(script) as connection:
        stream = await connection.jetstream().create_or_update_stream(STREAM)
        assert stream.cached_info.config.subjects == ["s"]


async def test_a_configuration_needs_no_name_where_the_stream_is_known(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        seen = []
        for nameless in (None, ""):
            config = StreamConfig(name=nameless, subjects=[name], max_msgs=len(seen) + 1)
            seen.append((await stream.change(lambda _, to=config: to)).config.max_msgs)
        assert seen == [1, 2]
        changed = await stream.change(lambda config: StreamConfig(subjects=[name]))
        assert (changed.config.name, changed.config.subjects) == (name, [name])
        with pytest.raises(js.BadArgument, match="the configuration is for OTHER"):
            await stream.change(lambda config: StreamConfig(name="OTHER"))
        for update in (stream.update_consumer, lambda c: jet.update_consumer(name, c)):
            with pytest.raises(js.BadArgument, match="has no name: give durable_name or name"):
                await update(ConsumerConfig(max_ack_pending=5))
