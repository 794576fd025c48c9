"""The events of a connection, and slow readers."""

from __future__ import annotations

import gc
import weakref

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests.dropping import let_go
from tests.logged import raised
from twinstream.testing import FakePeer, FakeServer


async def test_connection_events_are_reported(server_factory):
    reported = []
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        connection = await js.connect(server.url, reconnect=policy, on_event=reported.append)
        events = connection.events()
        server.kill()
        lost = await events.next(timeout=60)
        assert isinstance(lost, js.Disconnected)
        assert not connection.is_connected
        server.restart()
        back = await events.next(timeout=60)
        assert isinstance(back, js.Connected)
        assert back.epoch == connection.stats.connects == 2
        assert reported[0].outage == 0.0 < back.outage
        await connection.close()
        rest = [event async for event in events]
        assert rest == [js.Closed("")]
        with pytest.raises(js.IterationEnded):
            await events.next(timeout=1)
    assert [type(event) for event in reported] == [
        js.Connected,
        js.Disconnected,
        js.Connected,
        js.Closed,
    ]


async def test_failing_callback_does_not_end_the_connection(server_factory, caplog):
    caplog.set_level("DEBUG", "twinstream")

    def reported(event):
        raise ValueError(type(event).__name__)

    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    with server_factory() as server:
        async with js.connect(server.url, reconnect=policy, on_event=reported) as connection:
            subscription = await connection.subscribe("news")
            server.restart()

            async def came_back():
                return connection.is_connected and connection.stats.connects == 2

            await eventually(came_back)
            await connection.publish("news", b"1")
            assert (await subscription.next(timeout=60)).data == b"1"
    names = ["Connected", "Disconnected", "Connected", "Closed"]
    assert raised(caplog) == [f"on_event raised ValueError('{each}')" for each in names]


async def test_slow_owner_loses_the_newest_and_is_notified(server, name):
    async with js.connect(server.url) as connection:
        events = connection.events()
        subscription = await connection.subscribe(name, max_buffered=3)
        for number in range(10):
            await connection.publish(name, b"%d" % number)
        await connection.flush()
        assert subscription.buffered == 3
        assert subscription.dropped == 7
        assert [(await subscription.next(timeout=60)).data for _ in range(3)] == [b"0", b"1", b"2"]
        assert await events.next(timeout=1) == js.MessagesDropped(name, 1)


def dead_references():
    """Return the number of weak references to objects that no longer exist."""
    return sum(type(each) is weakref.ref and each() is None for each in gc.get_objects())


async def test_unreferenced_events_are_not_kept(server):
    async with js.connect(server.url) as connection:
        events = connection.events()
        before = dead_references()
        let_go([connection.events() for _ in range(1000)])
        assert dead_references() < before + 500
    assert [event async for event in events] == [js.Closed("")]


async def test_draining_waits_for_the_server_once():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            peer.expect("^SUB")
        peer.until_left()

    with FakeServer(script) as server:
        connection = await js.connect(server.url)
        subscriptions = [await connection.subscribe(f"news.{number}") for number in range(3)]
        await connection.drain(timeout=60)
        assert all(each.is_ended for each in subscriptions)
        lines = [each.line for each in server.operations("^UNSUB|^PING")]
        assert lines[1:5] == ["UNSUB 1", "UNSUB 2", "UNSUB 3", "PING"]


async def test_draining_hands_over_what_arrived(server, name):
    connection = await js.connect(server.url)
    subscription = await connection.subscribe(name)
    for number in range(5):
        await connection.publish(name, b"%d" % number)
    seen = []

    async def read():
        async for message in subscription:
            seen.append(message.data)

    async def drain():
        await connection.drain(timeout=60)

    await together(read, drain)
    assert seen == [b"0", b"1", b"2", b"3", b"4"]
    assert connection.is_closed


async def test_lame_duck_mode_is_reported(server_factory):
    with server_factory("lame_duck_duration: 30s, lame_duck_grace_period: 1s") as server:
        async with js.connect(server.url, reconnect=None) as connection:
            events = connection.events()
            server.lame_duck()
            assert isinstance(await events.next(timeout=60), js.LameDuck)


async def test_counts_return_to_where_they_were(server, name):
    async with js.connect(server.url) as connection:
        await connection.flush()
        jet = connection.jetstream()
        await jet.account_info()
        before = connection.stats

        async def back():
            return connection.stats == before

        for _ in range(20):
            async with await connection.subscribe(name):
                pass
            with pytest.raises(js.NoResponders):
                await connection.request(f"{name}.nobody")
        await eventually(back)


async def test_others_of_the_cluster_are_learnt_and_used(cluster):
    first = cluster.servers[0]
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    async with js.connect(first.url, reconnect=policy) as connection:
        assert connection.server_info.server_name == first.name
        assert len(connection.server_info.connect_urls) >= 3
        events = connection.events()
        first.kill()
        try:
            while not isinstance(await events.next(timeout=60), js.Connected):
                continue
            assert connection.server_info.server_name != first.name
            await connection.flush()
        finally:
            first.restart()
            cluster.wait_until_ready()
