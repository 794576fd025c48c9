"""Any stored message can be read in every way, and does not block later messages."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

import js_async as js
from js_async.backup import backup_stream, restore_stream
from tests._async.flow import eventually
from tests.conftest import VERSION
from tests.odd_messages import ODD_MESSAGES, publish_raw
from twinstream.core.read.arrow import header_pairs
from twinstream.models import ConsumerConfig, StreamConfig

pytest.importorskip("pyarrow")

# Older servers may find no last message of a subject once messages were deleted one by one.
FINDS_LAST = tuple(map(int, (VERSION or "99.0").split("."))) >= (2, 12, 5)


@pytest.fixture(params=[True, False], ids=["direct", "by the leader"])
def allow_direct(request):
    return request.param


@pytest.fixture
def opened(server):
    """Open JetStream over a connection of the SDK: the parser of nats-py fails on such headers."""

    @asynccontextmanager
    async def own():
        async with js.connect(server.url) as connection:
            yield connection.jetstream(timeout=10)

    return own


async def odd_stream(jet, server, name, allow_direct):
    """Return a stream of unusual messages followed by a usual one, and their payloads."""
    config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_direct=allow_direct)
    stream = await jet.create_stream(config)
    messages = publish_raw(server.port, f"{name}.odd")
    await jet.publish(f"{name}.last", b"last")

    async def stored():
        return (await stream.info()).state.messages == len(messages) + 1

    await eventually(stored)
    return stream, [each.data for each in messages] + [b"last"]


def check(found, payloads, way):
    """Check that all messages arrived, in order, with headers that can be accessed."""
    assert [message.data for message in found] == payloads, way
    for message, what in zip(found, [*ODD_MESSAGES, "last"], strict=True):
        headers = message.headers
        assert len(headers) == len(dict(headers)), (way, what)
        sent = ODD_MESSAGES[what].headers if what != "last" else None
        if headers.malformed:
            assert sent is not None, (way, what)
            # A direct get lacks the last two bytes.
            assert sent[:-2] in {headers.malformed, headers.malformed[:-2]}, (way, what)
        elif sent is not None and len(sent) > 2 and not sent.startswith(b"\r\n"):
            assert sent.startswith(b"NATS/1.0"), (way, what)


async def test_every_read_without_a_consumer(opened, server, name, allow_direct):
    async with opened() as jet:
        stream, payloads = await odd_stream(jet, server, name, allow_direct)
        ways = ("direct", "leader", "consumer") if allow_direct else ("leader", "consumer")
        for via in ways:
            check([message async for message in stream.read(via=via)], payloads, via)
            table = await stream.read(via=via).to_arrow()
            assert table.column("data").to_pylist() == payloads, via
        seqs = range(1, len(payloads) + 1)
        for direct in (True, False) if allow_direct else (False,):
            check([await stream.get_message(seq, direct=direct) for seq in seqs], payloads, direct)
        # For each message as the last one of its subject, too.
        for seq in reversed(seqs):
            snapshot = await stream.snapshot()
            last = max(snapshot.values(), key=lambda message: message.seq)
            assert (last.seq, last.data) == (seq, payloads[seq - 1])
            if FINDS_LAST:
                assert (await stream.get_last_message(last.subject)).data == payloads[seq - 1]
            await stream.delete_message(seq)


async def test_every_read_by_a_consumer(opened, server, name, allow_direct):
    async with opened() as jet:
        stream, payloads = await odd_stream(jet, server, name, allow_direct)
        count = len(payloads)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = await consumer.fetch(count, timeout=10)
        check(batch, payloads, "fetch")
        for message in batch:
            await message.nak()
        found = []
        async with consumer.messages() as messages:
            for _ in range(count):
                found.append(await messages.next(timeout=10))
                await found[-1].double_ack()
        found.sort(key=lambda message: message.metadata.stream_seq)
        check(found, payloads, "messages")
        async with stream.ordered() as messages:
            check([await messages.next(timeout=10) for _ in range(count)], payloads, "ordered")
        async with stream.push_messages(ConsumerConfig(ack_policy="none")) as messages:
            check([await messages.next(timeout=10) for _ in range(count)], payloads, "push")


async def test_a_handler_gets_every_message(opened, server, name):
    async with opened() as jet:
        stream, payloads = await odd_stream(jet, server, name, True)
        found = []
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))

        async def handle(message):
            found.append(message)

        consumption = consumer.consume(handle, stop_after=len(payloads))
        async with consumption:
            await consumption.wait()
        check(found, payloads, "consume")


async def test_a_core_subscriber_gets_every_message(server, name):
    async with js.connect(server.url) as connection:
        subscription = await connection.subscribe(f"{name}.odd")
        await connection.flush()
        messages = publish_raw(server.port, f"{name}.odd")
        found = [await subscription.next(timeout=10) for _ in messages]
        assert [each.data for each in found] == [each.data for each in messages]
        for each in found:
            assert len(each.headers) == len(dict(each.headers))
        assert connection.is_connected
        assert connection.stats.connects == 1


async def test_backup_contains_and_restores_them(opened, server, name, tmp_path):
    async with opened() as jet:
        stream, payloads = await odd_stream(jet, server, name, True)
        await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.delete_stream(name)
        restored = await restore_stream(jet, tmp_path / "copy")
        check([message async for message in restored.read()], payloads, "restored")


def test_malformed_headers_are_kept_in_arrow():
    assert header_pairs(b"") is None
    assert header_pairs(b"NATS/1.0\r\nA: 1\r\n") == [("A", ["1"])]
    assert header_pairs(b"\xff\xfe\r\n") == [("", ["\\xff\\xfe\r\n"])]
    assert header_pairs(b"HTTP/1.1\r\nA: 1\r\n") == [("", ["HTTP/1.1\r\nA: 1\r\n"]), ("A", ["1"])]
