"""Two connected domains whose streams have the same name and subjects.

Both streams store a published message, and both acknowledge it. The stream in the nearer domain
usually responds first.
"""

from __future__ import annotations

import pytest

import js_async as js
from js_async.coordination import Coordination
from js_async.exactly_once import Stored, SubjectWriter
from js_async.exactly_once.idempotent_writer import once_writer
from tests._async.flow import eventually
from tests.conftest import VERSION
from twinstream.errors import ObjectPutFailed
from twinstream.models import ObjectStoreConfig, StreamConfig
from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports

ROUNDS = 5


@pytest.fixture(scope="module")
def leaf():
    """Return a leaf node with the domain `leaf`, connected to a hub with the domain `hub`."""
    [port] = free_ports(1)
    listen = f'leafnodes {{ listen: "127.0.0.1:{port}" }}'
    dial = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{port}" }}] }}'
    with (
        NatsServer(listen, VERSION, domain="hub"),
        NatsServer(dial, VERSION, domain="leaf") as server,
    ):
        yield server


async def reachable(jet):
    """Wait until a domain answers."""

    async def answers():
        try:
            await jet.account_info()
        except js.TwinstreamError:
            return False
        return True

    await eventually(answers)


@pytest.mark.parametrize("domain", ["hub", "leaf"])
async def test_conditional_writes_report_the_stream_of_their_domain(leaf, name, domain):
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=60), connection.jetstream(domain="hub", timeout=60)
        await reachable(far)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], max_msgs_per_subject=1)
        await near.create_stream(config)
        # Sequences differ from here on.
        await near.publish(f"{name}.earlier")
        await far.create_stream(config)
        jet = near if domain == "leaf" else far
        stream, writer = await jet.get_stream(name), SubjectWriter(jet)
        for number in range(ROUNDS):
            subject = f"{name}.{number}"
            first = await writer.insert(subject, b"1")
            assert isinstance(first, Stored)
            assert (await stream.get_last_message(subject)).seq == first.seq
            second = await writer.update(subject, b"2", first.seq)
            assert (await stream.get_last_message(subject)).seq == second.seq
            with pytest.raises(js.WrongLastSequence):
                await writer.update(subject, b"3", first.seq)
            third = await writer.upsert(subject, b"4")
            found = await stream.get_last_message(subject)
            assert (found.seq, found.data) == (third.seq, b"4")


async def test_a_lock_is_held_in_the_domain_of_its_stream(leaf, name):
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=60), connection.jetstream(domain="hub", timeout=60)
        await reachable(far)
        here = Coordination(near, name, create=True)
        # Sequences differ from here on.
        async with here.lock("earlier").acquire(timeout=60):
            pass
        there = Coordination(far, name, create=True)
        for number in range(ROUNDS):
            async with there.lock(f"door{number}").acquire(timeout=60) as lease:
                [taken] = [each async for each in there.held("lock")]
                assert (taken.name, taken.record.seq) == (f"door{number}", lease.token)


@pytest.mark.parametrize("by", ["subject", "id"])
async def test_storage_in_another_domain_does_not_count(leaf, name, by):
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=60), connection.jetstream(domain="hub", timeout=60)
        await reachable(far)
        config = StreamConfig(name=name, subjects=[f"{name}.>"])
        await near.create_stream(config)
        await near.publish(f"{name}.earlier")
        stream = await far.create_stream(config)
        writer = once_writer(far, name, by, 5)
        await writer.check()
        requests = [
            js.PublishRequest(subject=f"{name}.{at}", data=b"%d" % at, msg_id=str(at))
            for at in range(ROUNDS)
        ]
        for request, written in zip(requests, await writer.write(requests), strict=True):
            if isinstance(written, Stored):
                assert (await stream.get_message(written.seq)).data == request.data
            else:
                assert by == "id"
                assert isinstance(written, js.RequestTimeout)


async def test_an_object_is_not_stored_in_the_store_of_another_domain(leaf, name):
    async with js.connect(leaf.url) as connection:
        near, far = connection.jetstream(timeout=60), connection.jetstream(domain="hub", timeout=60)
        await reachable(far)
        config = ObjectStoreConfig(bucket=name, storage="memory")
        store = await far.create_object_store(config)
        await store.put("a", b"of the hub")
        assert await store.get_bytes("a") == b"of the hub"
        await near.create_object_store(config)

        async def put_often():
            # Which of the two answers first is chance.
            for _ in range(20):
                await store.put("a", b"x" * 300_000)

        with pytest.raises(ObjectPutFailed, match="of domain leaf received the request"):
            await put_often()
