"""Typed events of real servers: filters, unknown kinds, and events that a slow reader misses."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import js_async as js
from tests._async.flow import eventually
from tests._async.streams import filled, run_out
from tests.logged import raised
from twinstream.models import (
    ConsumerAck,
    ConsumerAction,
    ConsumerConfig,
    MaxDeliver,
    Nak,
    StreamAction,
    StreamConfig,
    Terminated,
    UnknownEvent,
)


async def taken(events, count):
    """Return the next events; a server contradicts itself in none of them."""
    found = [await events.next(timeout=20) for _ in range(count)]
    contradictory = [each.problem for each in found if each.problem.startswith("its content")]
    assert not contradictory
    return found


async def test_stream_events_are_typed(opened, name):
    async with opened() as jet, jet.events(stream_name=name) as events:
        stream = await filled(jet, name, 3)
        config = ConsumerConfig(durable_name="c", max_deliver=1, sample_freq="100%")
        consumer = await stream.create_consumer(config)
        one, two, three = await consumer.fetch(3)
        await one.term("bad order")
        await two.nak()
        await three.ack()
        await eventually(run_out, consumer)
        found = await taken(events, 6)
        kinds = [type(event.record) for event in found]
        assert kinds[:2] == [StreamAction, ConsumerAction]
        assert set(kinds[2:]) == {Terminated, Nak, ConsumerAck, MaxDeliver}
        assert {event.stream_name for event in found} == {name}
        assert {event.consumer_name for event in found[1:]} == {"c"}
        by_kind = {event.kind: event.record for event in found}
        assert by_kind["terminated"].reason == "bad order"
        assert by_kind["max_deliver"].stream_seq == 2
        assert all(event.missed == 0 and not event.reconnected for event in found)
        assert events.subjects == (
            f"$JS.EVENT.*.STREAM.*.{name}",
            f"$JS.EVENT.*.CONSUMER.*.{name}.*",
        )


async def test_filters_by_consumer_and_kind(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        for each in ("a", "b"):
            await stream.create_consumer(ConsumerConfig(durable_name=each))
        async with jet.events(
            stream_name=name, consumer_name="b", kinds=[Nak, "terminated"]
        ) as events:
            for each in ("a", "b"):
                one, two = await (await stream.get_consumer(each)).fetch(2)
                await one.nak()
                await two.ack()
            await stream.delete_consumer("a")
            [event] = await taken(events, 1)
            assert (type(event.record), event.consumer_name) == (Nak, "b")
            assert await events.next(timeout=0.05) is None


async def test_acknowledgements_are_sampled(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        sampled = ConsumerConfig(durable_name="c", sample_freq="100%")
        consumer = await stream.create_consumer(sampled)
        listening = jet.events(stream_name=name, consumer_name="c", kinds=[ConsumerAck])
        async with listening as samples:
            for message in await consumer.fetch(5):
                await message.ack()
            found = [event.record for event in await taken(samples, 5)]
        assert [sample.stream_seq for sample in found] == [1, 2, 3, 4, 5]
        assert all(sample.ack_time > timedelta(0) for sample in found)


async def test_events_of_unknown_kinds_and_junk_are_kept(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        async with jet.events(stream_name=name) as events:
            newer = {"type": "io.nats.jetstream.advisory.v9.odd", "stream": name, "domain": "hub"}
            subject = f"$JS.EVENT.ADVISORY.STREAM.ODD.{name}"
            await connection.publish(subject, json.dumps(newer).encode())
            await connection.publish(subject, b"junk")
            odd, junk = await taken(events, 2)
        assert isinstance(odd.record, UnknownEvent)
        assert (odd.kind, odd.stream_name, odd.domain) == ("odd", name, "hub")
        assert (junk.raw, junk.kind) == (b"junk", "")
        assert "not JSON" in junk.problem


async def test_slow_reader_is_told_how_many_events_it_missed(server, name):
    drops = []
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        async with jet.events(stream_name=name, max_buffered=2, on_drop=drops.append) as events:
            subject = f"$JS.EVENT.ADVISORY.STREAM.ODD.{name}"
            for number in range(6):
                await connection.publish(subject, b"%d" % number)
            await connection.flush()
            assert (events.buffered, events.dropped) == (2, 4)
            assert [event.missed for event in await taken(events, 2)] == [0, 0]
            await connection.publish(subject, b"6")
            [event] = await taken(events, 1)
            assert (event.raw, event.missed) == (b"6", 4)
        assert [drop.dropped for drop in drops] == [1, 2, 4]
        with pytest.raises(js.BadArgument, match="max_buffered"):
            await jet.events(max_buffered=0)


async def test_what_on_drop_raises_does_not_touch_the_link(server, name, caplog):
    caplog.set_level("DEBUG", "twinstream")

    def failing(_):
        raise LookupError("not my day")

    async with js.connect(server.url) as connection:
        events = connection.jetstream().events(stream_name=name, max_buffered=1, on_drop=failing)
        async with events:
            for number in range(3):
                await connection.publish(f"$JS.EVENT.ADVISORY.STREAM.ODD.{name}", b"%d" % number)
            await connection.flush()
        assert connection.stats.connects == 1
    assert raised(caplog) == ["on_drop raised LookupError('not my day')"] * 2


async def test_lost_connection_is_reported_with_the_next_event(server_factory, name):
    patient = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        async with js.connect(server.url, reconnect=patient) as connection:
            jet = connection.jetstream(timeout=20)
            async with jet.events(kinds=[StreamAction]) as events:
                await jet.create_stream(StreamConfig(name=name))
                [first] = await taken(events, 1)
                server.kill()
                server.restart()
                await eventually(linked, connection, 2)
                await jet.delete_stream(name)
                [second] = await taken(events, 1)
                assert (first.reconnected, second.reconnected) == (False, True)


async def linked(connection, epoch):
    return connection.is_connected and connection.stats.connects >= epoch


async def test_the_iteration_ends_when_it_is_closed(opened, name):
    async with opened() as jet:
        events = await jet.events(stream_name=name)
        await events.close()
        assert [event async for event in events] == []
        with pytest.raises(js.IterationEnded, match="ended"):
            await events.next(timeout=1)


async def test_missing_permission_is_reported(server_factory):
    users = """
    authorization {
      users = [{user: a, password: b, permissions: {
        publish: ">", subscribe: {deny: "$JS.EVENT.METRIC.>"}}}]
    }
    """
    with server_factory(config=users) as server:
        async with js.connect(server.url, user="a", password="b") as connection:
            kinds = ["max_deliver", "consumer_ack"]
            async with connection.jetstream().events(kinds=kinds) as events:
                with pytest.raises(js.PermissionDenied):
                    await events.next(timeout=20)


async def test_domain_is_reported(server_factory, name):
    with server_factory(domain="hub") as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream(domain="hub")
            async with jet.events(stream_name=name) as events:
                await jet.create_stream(StreamConfig(name=name))
                [event] = await taken(events, 1)
                assert event.domain == "hub"
