"""A server with a small max_control_line: calls fail with the reason, and the connection serves on.

A server reports the limit only by closing the connection after a longer line.
"""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.flow import eventually

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)


async def connected_again(connection, epoch):
    return connection.is_connected and connection.stats.connects == epoch


@pytest.fixture
def small(server_factory):
    return server_factory("max_control_line: 512")


async def test_a_long_key_fails_once_and_is_not_sent_again(small):
    async with js.connect(small.url, reconnect=QUICK) as connection:
        bucket = await connection.jetstream().create_key_value(js.KeyValueConfig(bucket="b"))
        await bucket.put("a", b"1")
        for _ in range(2):
            with pytest.raises(js.BadArgument, match="max_control_line"):
                await bucket.put("k" * 800, b"x")
        assert connection.stats.connects == 2
        # The key of a read is part of a subject, too.
        for _ in range(2):
            with pytest.raises(js.BadArgument, match="max_control_line"):
                await bucket.get("k" * 600)
        assert connection.stats.connects == 3
        assert (await bucket.get("a")).value == b"1"
        await bucket.put("k" * 200, b"2")
        assert connection.stats.connects == 3


async def test_publishers_of_many_fail_with_the_reason(small):
    async with js.connect(small.url, reconnect=QUICK) as connection:
        jet = connection.jetstream()
        await jet.create_stream(js.StreamConfig(name="S", subjects=["s.>"]))
        long = "s." + "x" * 700
        subjects = ["s.a", long, "s.b"]
        requests = [js.PublishRequest(each, msg_id=each[:3] + "1") for each in subjects]
        errors = []
        async for each in jet.publish_many(requests):
            errors.append(each.error if isinstance(each, js.PublishFailure) else None)
        assert [error is None for error in errors] == [True, False, True]
        assert "max_control_line" in str(errors[1])
        assert connection.stats.connects == 2


async def test_a_message_that_must_not_be_sent_twice_fails_with_the_reason(small):
    async with js.connect(small.url, reconnect=QUICK) as connection:
        jet = connection.jetstream()
        await jet.create_stream(js.StreamConfig(name="S", subjects=["s.>"]))
        with pytest.raises(js.ConnectionLost, match="max_control_line"):
            await jet.publish("s." + "x" * 700)
        with pytest.raises(js.BadArgument, match="max_control_line"):
            await jet.publish("s." + "x" * 700)
        assert (await jet.publish("s.a")).seq == 1
        assert connection.stats.connects == 2


async def test_a_subscription_that_ends_connections_is_refused(small):
    async with js.connect(small.url, reconnect=QUICK) as connection:
        other = await connection.subscribe("other")
        async with connection.subscribe("x" * 600) as subscription:
            await eventually(connected_again, connection, 2)
            with pytest.raises(js.BadArgument, match="max_control_line"):
                await subscription.next(timeout=10)
        with pytest.raises(js.BadArgument, match="max_control_line"):
            await connection.subscribe("x" * 600)
        await connection.publish("other", b"1")
        assert (await other.next(timeout=60)).data == b"1"
        assert connection.stats.connects == 2


async def test_lines_that_no_server_reads_by_default_are_not_sent(opened, server):
    async with js.connect(server.url) as connection:
        with pytest.raises(js.BadArgument, match="max_control_line"):
            await connection.publish("s" * 2500, reply="r" * 2500)
        assert connection.stats.connects == 1
    async with opened() as jet:
        bucket = await jet.create_key_value(js.KeyValueConfig(bucket="LINES"))
        for call in (bucket.put, bucket.create):
            with pytest.raises(js.BadArgument, match="max_control_line"):
                await call("k" * 5000, b"")
        # Such a key is not part of the subject of a request.
        with pytest.raises(js.KeyNotFound):
            await bucket.get("k" * 5000)
