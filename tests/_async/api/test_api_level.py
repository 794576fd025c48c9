"""Requests that require an API level of the server (ADR-44)."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.scripted import scripted
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer

# Above that of any server of these years.
FAR = 1000


def calls(jet, name):
    """Return one call for each code path that sends requests."""
    stream = jet.bind_stream(name)
    return [
        lambda: jet.create_stream(StreamConfig(name=f"{name}-new", subjects=[f"{name}-new"])),
        lambda: jet.update_stream(StreamConfig(name=name, subjects=[name], max_msgs=5)),
        lambda: stream.create_consumer(ConsumerConfig(durable_name="new")),
        lambda: stream.purge(),
        lambda: stream.info(),
        lambda: stream.get_message(1),
        lambda: jet.account_info(),
    ]


@pytest.mark.since("2.12")
async def test_a_server_of_a_lower_level_does_nothing(server, name):
    async with js.connect(server.url) as connection:
        plain = connection.jetstream()
        stream = await plain.create_stream(StreamConfig(name=name, subjects=[name]))
        await plain.publish(name)
        for call in calls(connection.jetstream(required_api_level=FAR), name):
            with pytest.raises(js.JetStreamError) as caught:
                await call()
            assert caught.value.err_code == 10185
            assert f"required_api_level={FAR}: server" in str(caught.value)
        assert (await stream.info()).state.messages == 1
        assert [each async for each in stream.consumer_names()] == []
        level = connection.jetstream(required_api_level=2)
        for call in reversed(calls(level, name)):
            await call()
        await level.publish(name)


async def test_servers_that_would_ignore_the_level_get_no_request():
    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.11.11")
        peer.until_left(timeout=30)
        assert peer.count("JS.API") == 0

    async with scripted(script) as connection:
        for call in calls(connection.jetstream(required_api_level=1), "S"):
            with pytest.raises(js.Unsupported, match=r"required_api_level=1 needs server 2.12"):
                await call()


async def test_a_level_is_a_whole_number_from_one_up(server):
    async with js.connect(server.url) as connection:
        for wrong in (0, -1, "2", 1.5, True):
            with pytest.raises(js.BadArgument, match="required_api_level"):
                connection.jetstream(required_api_level=wrong)
