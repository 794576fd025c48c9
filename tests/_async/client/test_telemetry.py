"""OpenTelemetry: spans, links and metrics of messages, compared whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import js_async as js
from js_async.counters import Counters
from js_async.exactly_once import Processing
from js_async.outbox import OutboxRelay, SqliteOutbox
from js_async.workers import DeadLetters, Reject, Retry, Worker
from tests._async.flow import eventually, together
from tests.otel.spans import Asked, Collected, tree
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.otel import Telemetry, instrument
from twinstream.otel.instrumentor import TwinstreamInstrumentor

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collected():
    return Collected()


def template(subject):
    """Return the first token of a subject, and a name for the rest."""
    return f"{subject.partition('.')[0]}.{{id}}"


async def created(jet, name):
    return await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))


def attributes(name, kind, operation, subject, seq, **more):
    """Return the attributes of a span of a message."""
    return {
        "messaging.system.name": "nats",
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
        "messaging.destination.name": subject,
        "messaging.destination.template": template(subject),
        "messaging.client.id": "shop",
        "messaging.message.id": str(seq),
        "nats.stream": name,
        "nats.sequence": seq,
        "server.address": "HOST",
        "server.port": 0,
        **more,
    }


def shown(span, kind, trace, parent, links, given, status="UNSET"):
    operation, subject = given["messaging.operation.name"], given["messaging.destination.template"]
    return {
        "name": f"{operation} {subject}",
        "kind": kind,
        "trace": trace,
        "parent": parent,
        "links": links,
        "status": status,
        "attributes": given,
    }


def of_program(spans):
    """Return the spans without those of the background work of dead letters, by trace."""
    group = "messaging.consumer.group.name"
    kept = [each for each in spans if "dead-letters" not in str(each.attributes.get(group))]
    traces = {}
    for each in kept:
        traces.setdefault(each.context.trace_id, len(traces))
    return sorted(kept, key=lambda each: (traces[each.context.trace_id], each.start_time))


async def test_a_retry_and_a_dead_letter_with_its_replay_stay_in_their_traces(
    server, name, collected
):
    async def handler(message):
        if message.data == b"bad":
            raise Reject("never")
        if message.num_delivered == 1 and message.data == b"late":
            raise ValueError("not yet")

    async with js.connect(server.url, name="shop") as connection:
        instrument(connection, destination=template, **collected.settings)
        jet = connection.jetstream(timeout=60)
        await created(jet, name)
        with collected.tracer.start_as_current_span("sale"):
            await jet.publish(f"{name}.1", b"late")
        await jet.publish(f"{name}.2", b"bad")
        letters = DeadLetters(jet, name)
        retry = Retry(attempts=2, first=0.01)

        async def all_done():
            return worker.handled == 1 and worker.rejected == 1

        config = ConsumerConfig(durable_name="w")
        worker = Worker(jet, name, config, handler, retry=retry, dead_letters=letters)
        async with worker:
            await eventually(all_done)
        [letter] = [each async for each in letters.letters()]
        await letters.replay(letter)

        again = ConsumerConfig(
            durable_name="again", opt_start_seq=3, deliver_policy="by_start_sequence"
        )

        async def accept(message):
            return None

        worker = Worker(jet, name, again, accept)
        async with worker:

            async def is_handled():
                return worker.handled == 1

            await eventually(is_handled)

    def handled(subject, seq, attempt, outcome, group="w", **more):
        found = {
            "messaging.consumer.group.name": group,
            "nats.delivery.attempt": attempt,
            "nats.handler.outcome": outcome,
        }
        return attributes(name, "process", "process", subject, seq, **found, **more)

    def settled(operation, subject, seq, group="w"):
        found = {"messaging.consumer.group.name": group}
        return attributes(name, "settle", operation, subject, seq, **found)

    one, two = f"{name}.1", f"{name}.2"
    found = tree(of_program(collected.spans()))
    letter_subject = letter_attributes = None
    for each in found:
        subject = each["attributes"].get("messaging.destination.name", "")
        if subject.startswith("dead."):
            letter_subject = subject
    letter_attributes = attributes(f"{name}-dead", "send", "publish", letter_subject, 1)
    late = {"error.type": "ValueError"}
    rejected = handled(two, 2, 1, "given up", **{"error.type": "Reject"})
    assert found[0]["name"] == "sale"
    assert found[1:] == [
        shown("publish", "PRODUCER", 0, 0, [], attributes(name, "send", "publish", one, 1)),
        shown("process", "CONSUMER", 0, 1, [1], handled(one, 1, 1, "retried", **late), "ERROR"),
        shown("nak", "CLIENT", 0, 2, [], settled("nak", one, 1)),
        shown("process", "CONSUMER", 0, 1, [1], handled(one, 1, 2, "acknowledged")),
        shown("ack", "CLIENT", 0, 4, [], settled("ack", one, 1)),
        shown("publish", "PRODUCER", 1, None, [], attributes(name, "send", "publish", two, 2)),
        shown("process", "CONSUMER", 1, 6, [6], rejected, "ERROR"),
        shown("publish", "CLIENT", 1, 7, [6], letter_attributes),
        shown("term", "CLIENT", 1, 7, [], settled("term", two, 2)),
        # The replay, and its handler.
        shown("publish", "CLIENT", 1, 6, [6], attributes(name, "send", "publish", two, 3)),
        shown("process", "CONSUMER", 1, 6, [6], handled(two, 3, 1, "acknowledged", "again")),
        shown("ack", "CLIENT", 1, 11, [], settled("ack", two, 3, "again")),
    ]


async def test_an_outbox_event_its_message_handler_and_result_are_one_trace(
    server, name, collected, tmp_path
):
    instrumentor = TwinstreamInstrumentor()
    instrumentor.instrument(destination=template, settle_spans=False, **collected.settings)
    try:
        async with js.connect(server.url, name="shop") as connection:
            jet = connection.jetstream(timeout=60)
            await created(jet, name)
            await created(jet, f"{name}-out")
            store = SqliteOutbox(tmp_path / "shop.db")
            with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
                store.create(db)
                with collected.tracer.start_as_current_span("sale"):
                    store.add(db, f"{name}.{{id}}", b"tea", id="7")
            relay = OutboxRelay(jet, store, name, by="id")
            assert await relay.flush(timeout=30) == 1
            await jet.create_consumer(name, ConsumerConfig(durable_name="p"))

            async def work(message):
                return js.PublishRequest(f"{name}-out.7", message.data)

            async with Processing(
                jet, name, "p", work, into=f"{name}-out", by="subject"
            ) as processing:

                async def is_done():
                    return processing.done == 1

                await eventually(is_done)
            result = await jet.bind_stream(f"{name}-out").get_message(1)
    finally:
        instrumentor.uninstrument()
    found = tree(of_program(collected.spans()))
    assert [(each["name"], each["kind"], each["parent"], each["links"]) for each in found] == [
        ("sale", "INTERNAL", None, []),
        (f"create {name}.{{id}}", "PRODUCER", 0, []),
        (f"publish {name}.{{id}}", "CLIENT", 1, [1]),
        (f"process {name}.{{id}}", "CONSUMER", 1, [1]),
        (f"publish {name}-out.{{id}}", "PRODUCER", 3, []),
    ]
    assert {each["trace"] for each in found} == {0}
    published = of_program(collected.spans())[4].context
    assert result.headers["traceparent"].split("-")[1:3] == [
        f"{published.trace_id:032x}",
        f"{published.span_id:016x}",
    ]
    assert found[4]["attributes"] == attributes(
        f"{name}-out", "send", "publish", f"{name}-out.7", 1
    )
    assert found[3]["attributes"]["nats.handler.outcome"] == "acknowledged"
    async with js.connect(server.url) as connection:
        await connection.jetstream(timeout=60).publish(f"{name}.8")
    assert len(collected.spans()) == len(found)


def points(version, name):
    """Return the points of one published, fetched and acknowledged message."""
    system = "messaging.system.name" if version == "1.45" else "messaging.system"

    def point(operation, kind, consumer):
        found = {
            system: "nats",
            "messaging.operation.name": operation,
            "messaging.operation.type": kind,
            "server.address": "HOST",
            "server.port": 0,
        }
        if consumer:
            found |= {
                "messaging.consumer.group.name": "c",
                "messaging.destination.template": name,
            }
        return (found, 1)

    sent = point("publish", "send", False)
    received, acknowledged = point("fetch", "receive", True), point("ack", "settle", True)
    return {
        "messaging.client.operation.duration": [sent, received, acknowledged],
        "messaging.client.sent.messages": [sent],
        "messaging.client.consumed.messages": [received],
    }


@pytest.mark.parametrize("version", ["1.45", "1.43"])
async def test_metrics_and_names_of_each_version(server, name, collected, version):
    telemetry = Telemetry(conventions=version, **collected.settings)
    async with js.connect(server.url, name="shop", observers=[telemetry]) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        await jet.publish(f"{name}.1", b"secret payload", headers={"Card": "secret number"})
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        [message] = await consumer.fetch(1, timeout=60)
        await message.ack()
        found = collected.points()
    assert {key: value for key, value in found.items() if key.startswith("messaging")} == points(
        version, name
    )
    spans = collected.spans()
    assert "secret" not in str(tree(spans))
    subject = f" {name}.1" if version == "1.43" else ""
    acked = "$JS.ACK" if version == "1.43" else name
    assert [each.name for each in spans] == [f"publish{subject}", f"fetch {name}", f"ack {acked}"]
    assert {each.instrumentation_scope.schema_url for each in spans} == {
        f"https://opentelemetry.io/schemas/{version}.0"
    }
    [publish, fetch, ack] = tree(spans)
    # The fetch is linked to the message, and the acknowledgement is in its trace.
    assert (fetch["links"], ack["parent"]) == ([0], 0)
    if version == "1.43":
        assert publish["attributes"] == {
            "messaging.system": "nats",
            "messaging.operation.name": "publish",
            "messaging.operation.type": "send",
            "messaging.destination.name": f"{name}.1",
            "messaging.client.id": "shop",
            "messaging.message.body.size": 14,
            "messaging.message.id": "1",
            "messaging.nats.stream": name,
            "messaging.nats.sequence": 1,
            "server.address": "HOST",
            "server.port": 0,
        }


async def test_a_context_of_the_program_stays(server, name, collected):
    async with js.connect(server.url) as connection:
        instrument(connection, **collected.settings)
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        await jet.publish(f"{name}.1", headers={"Traceparent": PARENT})
        stored = await stream.get_message(1)
        assert dict(stored.headers) == {"Traceparent": PARENT}
    [span] = collected.spans()
    assert span.kind.name == "CLIENT"
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{span.links[0].context.span_id:016x}" == PARENT.split("-")[2]


async def test_a_message_that_was_stored_long_ago_is_linked(server, name, collected):
    async def handler(message):
        await message.ack()

    async with js.connect(server.url) as connection:
        instrument(connection, link_after=0, settle_spans=False, **collected.settings)
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        await jet.publish(f"{name}.1")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        async with consumer.consume(handler) as consuming:

            async def is_handled():
                return consuming.handled == 1

            await eventually(is_handled)
    _, process = tree(collected.spans())
    assert (process["parent"], process["links"], process["trace"]) == (None, [0], 1)


async def test_samplers_see_the_attributes_of_a_span_that_starts(server, name):
    sampler = Asked()
    collected = Collected(sampler)
    async with js.connect(server.url, name="shop") as connection:
        instrument(connection, destination=template, **collected.settings)
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        await jet.publish(f"{name}.1")
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await (await consumer.next(timeout=60)).ack()
    publish, receive, ack = sampler.attributes
    for each, operation, kind in (
        (publish, "publish", "send"),
        (receive, "next", "receive"),
        (ack, "ack", "settle"),
    ):
        assert each["messaging.system.name"] == "nats"
        assert each["messaging.operation.name"] == operation
        assert each["messaging.operation.type"] == kind
        assert (each["server.address"], each["server.port"]) == ("HOST", 0)
    for each in (publish, ack):
        assert each["messaging.destination.name"] == f"{name}.1"
        assert each["messaging.destination.template"] == template(name)
    assert receive["messaging.destination.template"] == name


async def test_each_caller_has_its_own_parent(server, name, collected):
    async with js.connect(server.url) as connection:
        instrument(connection, **collected.settings)
        jet = connection.jetstream(timeout=60)
        await created(jet, name)

        def caller(number):
            async def work():
                with collected.tracer.start_as_current_span(f"caller {number}"):
                    for _ in range(5):
                        await jet.publish(f"{name}.{number}")

            return work

        await together(*map(caller, range(4)))
    found = tree(collected.spans())
    for each in found:
        if each["name"] == "publish":
            number = each["attributes"]["messaging.destination.name"].partition(".")[2]
            assert found[each["parent"]]["name"] == f"caller {number}"
    assert len(found) == 4 * 6


@pytest.mark.parametrize("each_message", [False, True])
async def test_messages_of_bulk_calls_carry_the_context(server, name, collected, each_message):
    async with js.connect(server.url) as connection:
        instrument(connection, each_message=each_message, **collected.settings)
        jet = connection.jetstream(timeout=60)
        stream = await created(jet, name)
        with collected.tracer.start_as_current_span("import"):
            many = [(f"{name}.{number}", b"x") for number in range(3)]
            async with jet.publish_many(many) as outcomes:
                assert len([each async for each in outcomes]) == 3
        parents = [(await stream.get_message(seq)).headers["traceparent"] for seq in (1, 2, 3)]
    spans = collected.spans()
    assert {each.split("-")[1] for each in parents} == {f"{spans[0].context.trace_id:032x}"}
    assert len({each.split("-")[2] for each in parents}) == (3 if each_message else 1)
    assert len(spans) == (4 if each_message else 1)
    [(_, sent)] = collected.points()["messaging.client.sent.messages"]
    assert sent == 3


@pytest.mark.since("2.12")
async def test_an_addition_to_a_counter_carries_the_context_of_its_span(server, name, collected):
    async with js.connect(server.url) as connection:
        instrument(connection, **collected.settings)
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(
            StreamConfig(
                name=name, subjects=[f"{name}.>"], allow_msg_counter=True, allow_direct=True
            )
        )
        assert await Counters(jet, name).add(f"{name}.a", 3) == 3
        stored = await stream.get_message(1)
    [span] = collected.spans()
    assert (span.name, span.kind.name) == ("publish", "PRODUCER")
    assert (span.attributes["nats.stream"], span.attributes["nats.sequence"]) == (name, 1)
    assert stored.headers["traceparent"].split("-")[2] == f"{span.context.span_id:016x}"


async def test_the_retries_of_one_call_are_one_span(server, name, collected):
    async with js.connect(server.url) as connection:
        instrument(connection, **collected.settings)
        jet = connection.jetstream(timeout=60)
        with pytest.raises(js.NoStream):
            await jet.publish(f"{name}.none", retries=2, retry_wait=0.01)
    [span] = tree(collected.spans())
    assert span["status"] == "ERROR"
    assert span["attributes"]["error.type"] == "NoStream"
    [(found, count)] = collected.points()["messaging.client.sent.messages"]
    assert (found["error.type"], count) == ("NoStream", 1)


def test_settings_are_checked():
    with pytest.raises(js.BadArgument, match=r"conventions must be '1\.45' or '1\.43', got '1\.0'"):
        Telemetry(conventions="1.0")
    with pytest.raises(js.BadArgument, match="destination must be a function"):
        Telemetry(destination="orders")
