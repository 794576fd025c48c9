"""Leaders that step down, replicas that move, and lost servers: three real servers."""

from __future__ import annotations

from functools import partial

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests.conftest import VERSION
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsCluster

ACCOUNTS = """
accounts {
    SYS: { users: [{user: sys, password: pw}] }
    APP: { jetstream: enabled, users: [{user: app, password: pw}] }
}
system_account: SYS
no_auth_user: app
"""

# A group that elects its leader just now does not answer, and the node that was killed may be the
# one of the connection; asking again is all there is to do.
ELECTING = (js.RequestTimeout, js.NoResponders, js.ConnectionLost)


async def answered(call, *args, **options):
    """Repeat a call until the group has elected a leader and answers."""

    async def attempt():
        try:
            return await call(*args, **options) or True
        except ELECTING:
            return False
        except js.JetStreamError as error:
            if error.code == 503:
                return False
            raise

    return await eventually(attempt, patience=120)


async def led(handle):
    """Return the leader of a stream or consumer, once it has one and all followers are current."""

    async def look():
        try:
            cluster = (await handle.info()).cluster
        except (*ELECTING, js.JetStreamError):
            return None
        followers = cluster.replicas or []
        return cluster.leader if all(each.current for each in followers) else None

    return await eventually(look, patience=120)


def others(info):
    """Return the names of the followers."""
    return sorted(each.name for each in info.cluster.replicas or ())


async def test_leaders_step_down_in_favour_of_somebody(cluster, name):
    async with js.connect(cluster.url, request_timeout=2) as connection:
        jet = connection.jetstream()
        config = StreamConfig(name=name, subjects=[name], num_replicas=3)
        stream = await answered(jet.create_stream, config)
        consumer = await answered(stream.create_consumer, ConsumerConfig(durable_name="c"))
        for handle, call in ((stream, stream.replicas.step_down), (consumer, consumer.step_down)):
            await led(handle)
            wanted = others(await handle.info(timeout=60))[0]
            await answered(call, preferred=wanted)

            async def took_over(handle=handle, wanted=wanted):
                return await led(handle) == wanted

            await eventually(took_over, patience=120)
            before = await led(handle)
            await answered(call)

            async def another(handle=handle, before=before):
                return await led(handle) != before

            await eventually(another, patience=120)
        with pytest.raises(js.JetStreamError, match="nobody-here"):
            await stream.replicas.step_down(preferred="nobody-here", timeout=60)
        with pytest.raises(js.JetStreamError, match=r"(?i)peer"):
            await stream.replicas.remove("nobody-here", timeout=60)
        await jet.publish(name, timeout=60)
        await jet.delete_stream(name, timeout=60)


async def test_what_another_client_created_is_reached_at_once(cluster, name):
    """The server of the other client may learn of the leaders some milliseconds later."""
    here, there = cluster.servers[0].url, cluster.servers[1].url
    async with js.connect(here) as connection, js.connect(there) as other:
        jet, far = connection.jetstream(timeout=60), other.jetstream(timeout=60)

        def config(stream):
            return StreamConfig(name=stream, subjects=[f"{stream}.>"], num_replicas=3)

        await answered(jet.create_stream, config(name))
        for number in range(20):
            for way in ("fetch", "messages"):
                durable = f"{way}{number}"
                await jet.create_consumer(name, ConsumerConfig(durable_name=durable))
                consumer = far.bind_consumer(name, durable)
                if way == "fetch":
                    assert not await consumer.fetch(1, wait="none")
                else:
                    async with consumer.messages() as messages:
                        assert await messages.next(timeout=0.01) is None


@pytest.mark.since("2.14")
async def test_what_another_client_created_is_written_and_reset_at_once(cluster, name):
    here, there = cluster.servers[0].url, cluster.servers[1].url
    async with js.connect(here) as connection, js.connect(there) as other:
        jet, far = connection.jetstream(timeout=60), other.jetstream(timeout=60)
        for number in range(10):
            stream = f"{name}{number}"
            config = StreamConfig(
                name=stream, subjects=[f"{stream}.>"], num_replicas=3, allow_atomic=True
            )
            await answered(jet.create_stream, config)
            async with far.atomic_batch() as batch:
                await batch.add(f"{stream}.1", b"x")
            assert batch.ack.seq == 1
            await jet.create_consumer(stream, ConsumerConfig(durable_name="c"))
            assert (await far.bind_consumer(stream, "c").reset()).name == "c"
            await jet.delete_stream(stream)


async def test_replica_is_removed_and_replaced(cluster, name):
    async with js.connect(cluster.url, request_timeout=2) as connection:
        jet = connection.jetstream()
        config = StreamConfig(name=name, subjects=[name], num_replicas=2)
        stream = await answered(jet.create_stream, config)
        leader = await led(stream)
        (follower,) = others(stream.cached_info)
        await jet.publish(name, b"kept", timeout=60)
        await answered(stream.replicas.remove, follower)

        async def moved():
            return await led(stream) and others(stream.cached_info) not in ([], [follower])

        await eventually(moved, patience=120)
        assert leader not in others(stream.cached_info)
        assert (await stream.get_message(1, timeout=60)).data == b"kept"
        await jet.delete_stream(name, timeout=60)


@pytest.fixture
def own_cluster():
    """Three servers with a system account, which a test may kill."""
    with NatsCluster(config=ACCOUNTS, version=VERSION) as running:
        yield running


async def test_creations_outlive_the_leaders_they_were_sent_to(own_cluster, name):
    """Without repeated requests, the responses to 2 of 100 creations were lost."""
    url = own_cluster.url
    system = js.connect(url, user="sys", password="pw", request_timeout=2)
    async with js.connect(url) as app, system as operator:
        jet = app.jetstream(timeout=40)
        for step in range(6):
            creations = [
                partial(jet.create_stream, StreamConfig(name=f"{name}-{step}-{number}"))
                for number in range(5)
            ]
            await together(partial(answered, operator.jetstream().cluster.step_down), *creations)
        assert len([each async for each in jet.stream_names()]) == 30


async def test_the_operator_moves_streams_and_gives_up_servers(own_cluster, name):
    url = own_cluster.url
    system = js.connect(url, user="sys", password="pw", request_timeout=2)
    async with js.connect(url, request_timeout=2) as app, system as operator:
        jet, meta = app.jetstream(), operator.jetstream().cluster
        with pytest.raises(js.RequestTimeout, match="system account"):
            await app.jetstream(timeout=0.3).cluster.step_down()
        stream = await answered(jet.create_stream, StreamConfig(name=name, subjects=[name]))
        await jet.publish(name, b"kept", timeout=60)
        before = await led(stream)
        await answered(meta.move_stream, "APP", name, server=before)

        await eventually(settled_elsewhere, stream, before, patience=120)
        assert (await stream.get_message(1, timeout=60)).data == b"kept"
        with pytest.raises(js.JetStreamError, match="not in progress"):
            await meta.cancel_move("APP", name, timeout=60)
        await answered(meta.step_down)
        with pytest.raises(js.JetStreamError):
            await answered(meta.remove_server, "nobody-here")
        await evacuated(own_cluster, stream, meta)
        lost = own_cluster.node(next(n for n in NODES if n != last_leader(stream)))
        lost.kill()
        await answered(meta.remove_server, lost.name)
        assert await answered(meta.purge_account, "APP")

        async def empty():
            return [each async for each in jet.stream_names()] == []

        await eventually(empty, patience=120)


async def settled_elsewhere(stream, before):
    """Return whether the move to another server has ended.

    The state is requested during the move.
    """
    leader = await led(stream)
    cluster = stream.cached_info.cluster
    return leader != before and not cluster.replicas and cluster.desired is None


NODES = ("node-1", "node-2", "node-3")


def last_leader(stream):
    """Return the leader in the stream's last info."""
    return stream.cached_info.cluster.leader


async def evacuated(servers, stream, meta):
    """Move a stream from its server with both operations of 2.15."""
    if tuple(map(int, servers.servers[0].version.split(".")[:2])) < (2, 15):
        return
    for step in (stream.replicas.evacuate, meta.evacuate_server):
        before = await led(stream)
        await answered(step, before)
        await eventually(settled_elsewhere, stream, before, patience=120)
    with pytest.raises(js.JetStreamError, match="not in progress"):
        await answered(stream.replicas.cancel_move)
    with pytest.raises(js.JetStreamError, match="leader is known"):
        await meta.rescue(2, timeout=1)
