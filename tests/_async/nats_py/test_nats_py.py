"""Behaviour that only a connection of nats-py has: its errors, and permissions."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from datetime import timedelta

import nats
import pytest
from nats.js import api

import js_async as js
from tests._async.client.test_permissions import NOT_IMPORTED, POSSIBLE, prepared, world
from tests._async.flow import eventually, together
from tests._async.operations import ACTS
from tests.descriptors import socket_to
from tests.inside import session_of
from tests.odd_messages import OddMessage, publish_raw
from tests.worlds import users
from twinstream.models import ConsumerConfig, StreamConfig, decode
from twinstream.observe import Observer
from twinstream.permissions import consume, permissions
from twinstream.testing import FakeServer, Proxy

__all__ = ["world"]


@asynccontextmanager
async def client(url, user, **options):
    """Connect with nats-py, and collect its reports."""
    reported = []

    async def note(error):
        reported.append(error)

    connected = await nats.connect(url, user=user, password="pw", error_cb=note, **options)
    try:
        yield connected, reported
    finally:
        await connected.close()


@pytest.mark.parametrize("name", POSSIBLE)
async def test_an_operation_over_nats_py_uses_what_it_declares(world, name, tmp_path):
    if world.options.get("prefix") and name in NOT_IMPORTED:
        pytest.skip("the server carries snapshots to no other account")
    stage = await prepared(world.admin_url, name, tmp_path)
    async with client(world.url, name) as (connected, reported):
        await ACTS[name][1](js.from_nats(connected, **world.options), stage)
        await connected.flush()
    assert reported == []


async def test_permission_errors_are_reported_over_nats_py(server_factory):
    needs = permissions(consume("S", "c"), inbox_prefix="_INBOX_Worker")
    config = f"""accounts {{ A: {{
        jetstream: enabled, users: [{{user: admin, password: pw}}, {users({"worker": needs})}]
    }} }}"""
    with server_factory(config) as server:
        async with js.connect(server.url, user="admin", password="pw") as connection:
            stream = await connection.jetstream().create_stream(
                StreamConfig(name="S", subjects=["s"])
            )
            await stream.create_consumer(ConsumerConfig(durable_name="c"))
            await connection.jetstream().publish("s", b"tea")
        async with client(server.url, "worker", inbox_prefix=b"_INBOX_Worker") as (connected, _):
            jet = js.from_nats(connected, timeout=20)
            consumer = await jet.get_consumer("S", "c")
            message = await consumer.next(timeout=10)
            assert message is not None
            await message.double_ack()
            for _ in range(2):
                with pytest.raises(js.PermissionDenied, match=r"(?i)STREAM\.INFO\.S"):
                    await jet.get_stream("S")
        async with client(server.url, "worker") as (connected, _):
            jet = js.from_nats(connected, timeout=20)
            for _ in range(2):
                with pytest.raises(js.PermissionDenied, match=r"(?i)_inbox"):
                    await jet.get_consumer("S", "c")


@pytest.mark.parametrize("headers", [{"Status": "404"}, {"Status": "sent", "Description": "blue"}])
async def test_a_publisher_may_name_headers_as_nats_py_names_the_status(server, name, headers):
    connected = await nats.connect(server.url)
    try:
        jet = js.from_nats(connected, timeout=10)
        config = StreamConfig(name=name, subjects=[name], allow_direct=True)
        stream = await jet.create_stream(config)
        await jet.publish(name, headers=headers)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        (message,) = await consumer.fetch(1, timeout=10)
        assert dict(message.headers) == headers
        assert dict((await stream.get_message(1, direct=True)).headers) == headers
        async with stream.read(via="direct") as read:
            assert [dict(message.headers) async for message in read] == [headers]
    finally:
        await connected.close()


async def test_the_parser_of_nats_py_has_the_limits_of_the_guide(server, name):
    connected = await nats.connect(server.url)
    try:
        jet = js.from_nats(connected, timeout=10)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await jet.publish(name, headers={"Tag": ["a", "b"]})
        message = await consumer.next(timeout=10)
        assert message.headers.pairs == (("Tag", "b"),)
        publish_raw(server.port, name, OddMessage(b"12345678"))
        assert await consumer.next(timeout=1) is None
        with pytest.raises(js.RequestTimeout):
            await jet.account_info(timeout=0.5)
    finally:
        await connected.close()


async def test_headers_of_a_publisher_do_not_replace_those_of_the_server(server, name):
    names = ("Subject", "Stream", "Sequence", "Time-Stamp", "Num-Pending", "Last-Sequence")
    forged = {f"Nats-{each}": "7" for each in names} | {"A": "b"}
    connected = await nats.connect(server.url)
    try:
        jet = js.from_nats(connected, timeout=10)
        config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_direct=True)
        stream = await jet.create_stream(config)
        for number in (1, 2):
            await jet.publish(f"{name}.{number}", b"tea", headers=forged)
        places = [(f"{name}.{number}", number) for number in (1, 2)]
        async with stream.read() as read:
            assert [(each.subject, each.seq) async for each in read] == places
        found = [*(await stream.snapshot()).values(), await stream.get_message(1)]
        assert [(each.subject, each.seq) for each in found] == [*places, places[0]]
        assert {(each.stream_name, each.headers["A"]) for each in found} == {(name, "b")}
    finally:
        await connected.close()


async def test_headers_may_be_as_odd_as_their_publisher_likes(server, name):
    connected = await nats.connect(server.url)
    async with js.connect(server.url) as publisher:
        try:
            jet = js.from_nats(connected, timeout=10)
            stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
            odd = b"NATS/1.0\r\nA: x\ny\r\nB: \0\r\n\r\n"
            await session_of(publisher).send(name.encode(), b"", odd, b"tea")
            await publisher.flush()
            consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
            message = await consumer.next(timeout=30)
            assert message is not None
            assert (message.data, dict(message.headers)) == (b"tea", {"A": "x\ny", "B": "\0"})
        finally:
            await connected.close()


@pytest.mark.parametrize("headers", [{"A": "\udcff"}, {"A(": "b"}])
async def test_a_message_that_nats_py_cannot_send_is_an_error_of_this_package(
    server, name, headers
):
    connected = await nats.connect(server.url)
    try:
        jet = js.from_nats(connected, timeout=10)
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        with pytest.raises(js.BadArgument, match="nats-py cannot send"):
            await jet.publish(name, b"tea", headers=headers)
        # Each message of several has its own outcome.
        requests = [js.PublishRequest(name, b"1", headers=headers), js.PublishRequest(name, b"2")]
        async with jet.publish_many(requests) as outcomes:
            failure, ack = [outcome async for outcome in outcomes]
            assert isinstance(failure.error, js.BadArgument)
        assert ack.stream == name
    finally:
        await connected.close()


@pytest.mark.parametrize("error", [js.ConnectionLost, js.ConnectionClosed])
async def test_waiter_for_a_response_is_notified_of_a_lost_connection(error):
    """The error is not a timeout: the deadline has not passed."""

    def script(peer):
        peer.handshake()
        peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE")
        peer.reach("asked")
        peer.until_left()

    async def ignored(error):
        pass

    with FakeServer(script) as server:
        connected = await nats.connect(server.url, error_cb=ignored, max_reconnect_attempts=1)

        async def ask():
            with pytest.raises(error):
                # Not asked again over the next link: it may have been done.
                await js.from_nats(connected, timeout=60).delete_stream("S")

        async def cut():
            await eventually(asked)
            if error is js.ConnectionClosed:
                await connected.close()
            else:
                with socket_to(server.port) as sock:
                    sock.shutdown(socket.SHUT_RDWR)

        async def asked():
            return server.reached("asked")

        await together(ask, cut)
        await connected.close()


async def test_a_call_waits_until_the_client_has_reconnected(server, name):
    async def ignored(error):
        pass

    async def is_cut():
        return not connected.is_connected

    with Proxy(server.url) as proxy:
        connected = await nats.connect(
            proxy.url, error_cb=ignored, reconnect_time_wait=0.1, max_reconnect_attempts=-1
        )
        jet = js.from_nats(connected, timeout=30)
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        proxy.refuse = True
        proxy.cut()
        await eventually(is_cut)

        async def publish():
            return await jet.publish(name, b"tea")

        async def repair():
            proxy.refuse = False

        ack, _ = await together(publish, repair)
        assert ack.seq == 1
        await connected.close()


async def test_end_of_the_client_is_reported_as_an_error_of_this_package(server, name):
    connected = await nats.connect(server.url)
    jet = js.from_nats(connected)
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
    await jet.publish(name, b"tea")
    message = await consumer.next()
    await connected.close()
    uses = [consumer.next, consumer.messages().__anext__, jet.events().__aenter__, message.ack]
    for use in uses:
        with pytest.raises(js.ConnectionClosed, match="closed"):
            await use()


async def test_a_client_may_drain_while_something_is_consumed(server, name):
    connected = await nats.connect(server.url)
    jet = js.from_nats(connected)
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
    await jet.publish(name, b"tea")
    handled = asyncio.Event()

    async def handle(message):
        await message.ack()
        handled.set()

    consuming = consumer.consume(handle)
    await consuming.start()
    await asyncio.wait_for(handled.wait(), 30)
    await connected.drain()
    with pytest.raises(js.ConnectionClosed, match=r"closed|draining"):
        await consuming.wait(timeout=10)


async def test_only_a_connected_nats_py_client_is_accepted(server):
    connected = await nats.connect(server.url)
    async with js.connect(server.url) as own:
        for other in (None, server.url, own, connected.jetstream()):
            with pytest.raises(js.BadArgument, match=r"what nats\.connect\(\) of nats-py returns"):
                js.from_nats(other)
    await connected.close()
    with pytest.raises(js.BadArgument, match="not connected"):
        js.from_nats(connected)


async def test_configuration_of_nats_py_is_recognised_and_can_be_decoded(server, name):
    theirs = api.StreamConfig(name=name, subjects=[name], max_age=60)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        told = r"a StreamConfig is expected, got that of nats\.js\.api; .*as_dict\(\)"
        with pytest.raises(js.BadArgument, match=told):
            await jet.create_stream(theirs)
        stream = await jet.create_stream(decode(theirs.as_dict(), StreamConfig))
        assert stream.cached_info.config.max_age == timedelta(seconds=60)


async def test_calls_over_nats_py_are_reported(server):
    told = []
    connected = await nats.connect(server.url)
    try:
        jet = js.from_nats(connected, timeout=10, on_call=told.append)
        await jet.create_stream(StreamConfig(name="TOLD"))
        await jet.publish("TOLD", b"x")
        assert [each.seq async for each in jet.publish_many([("TOLD", b"x")])] == [2]
        with pytest.raises(js.BadArgument, match="on_call must be a plain function"):
            js.from_nats(connected, on_call="told")
    finally:
        await connected.close()
    assert [(call.kind, call.stream_name) for call in told] == [
        ("api", "TOLD"),
        ("publish", "TOLD"),
        ("publish", "TOLD"),
    ]


async def test_observers_see_calls_and_messages(server, name):
    class Kinds(Observer):
        def __init__(self):
            self.ended = []

        def end(self, operation, token):
            self.ended.append((operation.kind, operation.name, operation.server))

    kinds = Kinds()
    connected = await nats.connect(server.url)
    try:
        jet = js.from_nats(connected, timeout=10, observers=[kinds])
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        await jet.publish(name)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await (await consumer.next(timeout=10)).ack()
    finally:
        await connected.close()
    where = ("127.0.0.1", server.port)
    assert [each for each in kinds.ended if each[1] != "api"] == [
        ("publish", "publish", where),
        ("receive", "next", where),
        ("ack", "ack", where),
    ]
