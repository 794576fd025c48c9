"""Managing streams and consumers: finding, listing, changing, sealing and pausing them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import js_async as js
from tests._async.scripted import scripted
from tests._async.streams import filled
from twinstream.models import ConsumerConfig, StreamConfig, evolve
from twinstream.testing import FakePeer, FakeServer


async def test_a_stream_is_found_by_a_subject(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.a.*"]))
        await jet.create_stream(StreamConfig(name=f"{name}B", subjects=[f"{name}.b.*"]))
        assert await jet.stream_name_by_subject(f"{name}.a.1") == name
        assert await jet.stream_name_by_subject(f"{name}.b.*") == f"{name}B"
        with pytest.raises(js.StreamNotFound, match=f"{name}.c") as caught:
            await jet.stream_name_by_subject(f"{name}.c")
        assert caught.value.err_code == 10059
        with pytest.raises(js.BadArgument, match=f"{name}, {name}B"):
            await jet.stream_name_by_subject(f"{name}.>")
        with pytest.raises(js.BadArgument):
            await jet.stream_name_by_subject("a b")


async def test_a_bound_stream_asks_for_nothing_before_it_must(opened, name):
    async with opened() as jet:
        stream = jet.bind_stream(name)
        assert stream.name == name
        assert stream.cached_info is None
        await filled(jet, name, 3)
        assert await stream.purge() == 3
        assert (await stream.info()) == stream.cached_info
        with pytest.raises(js.BadArgument):
            jet.bind_stream("a.b")


async def test_a_change_keeps_everything_else(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[name], description="before", max_msgs=9)
        stream = await jet.create_stream(config)
        await stream.change(lambda config: evolve(config, max_age=timedelta(hours=1)))
        found = (await jet.get_stream(name)).cached_info.config
        assert (found.description, found.max_msgs) == ("before", 9)
        assert found.max_age == timedelta(hours=1)
        before = stream.cached_info
        unchanged = await stream.change(lambda config: config)
        assert unchanged.config == before.config


async def test_change_that_returns_no_configuration_is_refused(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        with pytest.raises(js.BadArgument, match=r"return the changed .*; it returned None"):
            await stream.change(lambda config: None)
        with pytest.raises(js.BadArgument, match="a StreamConfig is expected, got dict"):
            await jet.update_stream({"name": name})


async def test_sealed_stream_accepts_and_removes_nothing(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 2)
        assert (await stream.seal()).config.sealed
        with pytest.raises(js.JetStreamError, match="sealed"):
            await jet.publish(f"{name}.x")
        with pytest.raises(js.JetStreamError, match="sealed"):
            await stream.purge()
        with pytest.raises(js.JetStreamError, match="sealed"):
            await stream.delete_message(1)
        assert (await stream.info()).state.messages == 2


async def test_subjects_come_with_their_counts(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        await jet.publish(f"{name}.1")
        counts = {subject: count async for subject, count in stream.subjects()}
        assert counts == {f"{name}.0": 1, f"{name}.1": 2, f"{name}.2": 1}
        assert [each async for each in stream.subjects(f"{name}.2")] == [(f"{name}.2", 1)]
        assert [each async for each in stream.subjects("other")] == []
        with pytest.raises(js.StreamNotFound):
            [each async for each in jet.bind_stream(f"{name}X").subjects()]


async def test_more_subjects_than_one_response_contains(server, name):
    """The server puts 100,000 subjects into one response."""
    total = 100_007
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await filled(jet, name, total)
        found = [each async for each in stream.subjects()]
        assert len(found) == total
        assert set(found) == {(f"{name}.{number}", 1) for number in range(total)}
        await jet.delete_stream(name)


async def test_details_of_what_is_deleted(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 5)
        await stream.delete_message(2)
        await stream.delete_message(4)
        info = await stream.info()
        assert (info.state.num_deleted, info.state.deleted) == (2, None)
        assert (await stream.info(deleted_details=True)).state.deleted == [2, 4]


@pytest.mark.since("2.11")
async def test_pedantic_request_is_refused_where_others_are_changed(opened, name):
    async with opened() as jet:
        config = StreamConfig(
            name=name,
            subjects=[name],
            max_age=timedelta(minutes=1),
            duplicate_window=timedelta(minutes=2),
        )
        with pytest.raises(js.JetStreamError, match=r"(?i)duplicate"):
            await jet.create_stream(config, pedantic=True)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]), pedantic=True)
        limited = StreamConfig(name=name, subjects=[name], max_msgs=5)
        await jet.update_stream(limited, pedantic=True)
        exact = ConsumerConfig(durable_name="c", backoff=[timedelta(seconds=1)], max_deliver=3)
        with pytest.raises(js.JetStreamError, match="pedantic"):
            await stream.create_consumer(
                evolve(exact, ack_wait=timedelta(seconds=9)), pedantic=True
            )


@pytest.mark.since("2.11")
async def test_a_pause_up_to_a_moment(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 1)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        end = datetime.now(UTC) + timedelta(hours=1)
        told = await consumer.pause(until=end)
        assert told.paused
        assert told.pause_until == end
        await consumer.resume()
        with pytest.raises(js.BadArgument, match="past by the server's clock"):
            await consumer.pause(until=datetime(2020, 1, 1, tzinfo=UTC))
        assert not (await consumer.info()).paused
        with pytest.raises(js.BadArgument, match="has no zone"):
            await consumer.pause(until=datetime(2040, 1, 1))
        for wrong in ({}, {"duration": 1, "until": end}):
            with pytest.raises(js.BadArgument, match="give either the duration"):
                await consumer.pause(**wrong)


async def test_a_server_without_a_cluster_has_no_leader_to_replace(opened, name):
    async with opened(timeout=0.3) as jet:
        stream = await filled(jet, name, 0)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        for call in (stream.replicas.step_down, consumer.step_down):
            with pytest.raises(js.JetStreamError) as caught:
                await call()
            assert caught.value.err_code == 10010
        with pytest.raises(js.JetStreamError):
            await stream.replicas.remove("node")
        with pytest.raises((js.RequestTimeout, js.NoResponders), match="system account"):
            await jet.cluster.step_down()


def page(kind, member, names, total, **more):
    """Return a response with three entries per page."""
    answer = {"type": f"io.nats.jetstream.api.v1.{kind}", "total": total, "limit": 3}
    return {**answer, member: names, **more}


def described(name):
    state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
    return {"config": {"name": name}, "created": "2026-01-01T00:00:00Z", "state": state}


async def test_streams_that_cannot_be_described_are_listed():
    """Such a page has fewer infos than entries. The next page begins after its entries."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect(r"STREAM\.LIST")
        assert first.payload == b""
        infos = [described("A"), described("C")]
        more = {"missing": ["B"], "offline": {"X": "unsupported"}}
        peer.answer(first, page("stream_list_response", "streams", infos, 5, **more))
        second = peer.expect(r"STREAM\.LIST")
        assert second.json == {"offset": 3}
        rest = [described("D")]
        more = {"missing": ["E", "B"]}
        peer.answer(second, page("stream_list_response", "streams", rest, 5, **more))

    async with scripted(script) as connection:
        listing = connection.jetstream().streams()
        assert [info.config.name async for info in listing] == ["A", "C", "D"]
        assert listing.missing == ["B", "E"]
        assert listing.offline == {"X": "unsupported"}
        assert [info async for info in listing] == []


async def test_lists_end_even_if_the_total_is_never_reached():
    """The list becomes shorter between two pages, and the server reports a page limit of 0."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        names = page("consumer_names_response", "consumers", ["a", "b", "c"], 7)
        peer.answer(peer.expect(r"CONSUMER\.NAMES\.S"), names)
        peer.answer(peer.expect(r"CONSUMER\.NAMES\.S"), {**names, "consumers": ["d"], "limit": 0})
        last = peer.expect(r"CONSUMER\.NAMES\.S")
        assert last.json == {"offset": 4}
        peer.answer(last, {**names, "consumers": None, "limit": 0})

    async with scripted(script) as connection:
        names = connection.jetstream().bind_stream("S").consumer_names()
        assert [each async for each in names] == ["a", "b", "c", "d"]


OLD = [
    ("2.10.9", lambda jet: jet.bind_stream("S").replicas.step_down(preferred="n"), "2.11"),
    ("2.10.9", lambda jet: jet.create_stream(StreamConfig(name="S"), pedantic=True), "2.11"),
    ("2.14.9", lambda jet: jet.bind_stream("S").replicas.evacuate("n"), "2.15"),
    ("2.14.9", lambda jet: jet.bind_stream("S").replicas.cancel_move(), "2.15"),
    ("2.14.9", lambda jet: jet.cluster.evacuate_server("n"), "2.15"),
    ("2.14.9", lambda jet: jet.cluster.rescue(1), "2.15"),
    ("2.13.9", lambda jet: jet.bind_consumer("S", "c").reset(), "2.14"),
    ("2.10.9", lambda jet: jet.bind_consumer("S", "c").unpin("g"), "2.11"),
    ("2.10.9", lambda jet: jet.bind_consumer("S", "c").pause(1), "2.11"),
]


@pytest.mark.parametrize(("version", "call", "needed"), OLD)
async def test_what_a_server_lacks_is_refused_here(version, call, needed):
    def script(peer: FakePeer) -> None:
        peer.handshake(version=version)
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.Unsupported, match=rf"{needed}.*{version}"):
                await call(connection.jetstream())
        assert server.operations("^PUB") == []


WRONG = [
    lambda jet: jet.cluster.remove_server(""),
    lambda jet: jet.cluster.move_stream("A", "S"),
    lambda jet: jet.cluster.purge_account("a.b"),
    lambda jet: jet.cluster.rescue(0),
    lambda jet: jet.bind_stream("S").replicas.remove(""),
    lambda jet: jet.bind_stream("S").replicas.step_down(tags="ssd"),
    lambda jet: jet.bind_stream("S").replicas.step_down(preferred=""),
    lambda jet: jet.bind_consumer("S", "c").reset(0),
    lambda jet: jet.bind_consumer("S", "c").reset("1"),
]


@pytest.mark.parametrize("call", WRONG)
async def test_wrong_arguments_reach_no_server(opened, call):
    async with opened() as jet:
        with pytest.raises(js.BadArgument):
            await call(jet)


async def test_a_refused_rescue_names_the_servers_that_accepted():
    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.15.1")
        request = peer.expect(r"META\.RESCUE")
        peer.answer(request, {"server": "a", "server_id": "A", "success": True})
        peer.answer(request, {"error": {"code": 400, "err_code": 10003, "description": "no"}})
        peer.answer(request, {"server": "b", "server_id": "B", "success": True})
        peer.until_left()

    async with scripted(script) as connection:
        with pytest.raises(js.JetStreamError) as caught:
            await connection.jetstream().cluster.rescue(2, timeout=0.5)
        assert caught.value.__notes__ == ["servers that took the new quorum: a, b"]
