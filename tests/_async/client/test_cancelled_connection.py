"""Connections that are closed while tasks are cancelled, or while data is unwritten."""

from __future__ import annotations

import asyncio
import socket

import pytest

import js_async as js
import js_async.publish.publisher
from tests._async.flow import eventually
from tests.descriptors import socket_to
from tests.inside import link_of, session_of
from twinstream.testing import FakePeer, FakeServer


async def test_connection_with_cancelled_close_is_closed():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=60)

    with FakeServer(script) as server:
        connection = await js.connect(server.url)
        closing = asyncio.create_task(connection.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert connection.is_closed


async def test_close_waits_no_longer_than_until_the_socket_is_closed(server, tuned):
    connection = await js.connect(server.url)
    tuned("socket close time", 300)
    await asyncio.wait_for(connection.close(), 60)


async def test_unwritten_data_does_not_delay_the_end_of_a_connection():
    """A peer that closed its side has ended the connection, even if data for it is unwritten."""

    def deaf(peer: FakePeer) -> None:
        peer.handshake(max_payload=1 << 26)
        peer.stop_reading()
        peer.reach("deaf")
        peer.wait_for("stuck")
        peer.half_close()
        peer.wait_for("repaired", timeout=60)
        peer.reset()

    def welcome(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left()

    reconnect = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
    with FakeServer(deaf, welcome) as server:
        async with js.connect(server.url, reconnect=reconnect) as connection:

            async def is_deaf():
                return server.reached("deaf")

            async def is_stuck():
                return link_of(connection).is_full

            async def is_repaired():
                return connection.is_connected and connection.stats.connects == 2

            await eventually(is_deaf)
            publishing = asyncio.create_task(connection.publish("big", bytes(1 << 25)))
            await eventually(is_stuck)
            server.tell("stuck")
            await eventually(is_repaired)
            await publishing
            server.tell("repaired")


@pytest.mark.parametrize("size", [1 << 14, 1 << 18], ids=["together", "in pieces"])
async def test_what_is_sent_over_a_socket_that_just_broke_is_lost_without_a_warning(
    caplog, server, size
):
    reconnect = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
    async with js.connect(server.url, reconnect=reconnect) as connection:
        session = session_of(connection)
        with socket_to(server.port) as sock:
            sock.shutdown(socket.SHUT_WR)
        # Without a pause: the loop could tell of the end in between.
        for _ in range(40):
            session.write(b"lost", b"", b"", bytes(size))

        async def is_repaired():
            return connection.is_connected and connection.stats.connects == 2

        await eventually(is_repaired)
        await connection.flush()
    assert [each for each in caplog.records if each.name == "asyncio"] == []
