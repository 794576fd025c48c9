"""Range reads from a scripted server."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.scripted import scripted
from tests.fake.ordering import stream_info
from twinstream.testing import FakePeer


async def test_a_consumer_is_deleted_though_the_deletion_overtook_its_creation():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), stream_info(9))
        name = peer.expect(r"CONSUMER\.CREATE\.S").json["config"]["name"]
        # The read gives up. At the end of the block it waits for the deletion, which this server
        # answers before it creates the consumer.
        missing = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
        peer.answer(peer.expect(rf"CONSUMER\.DELETE\.S\.{name} _INBOX"), missing)
        peer.answer(peer.expect(rf"CONSUMER\.DELETE\.S\.{name} _INBOX"), {"success": True})

    async with scripted(script) as connection:
        stream = connection.jetstream(timeout=1).bind_stream("S")
        with pytest.raises(js.RequestTimeout):
            async with stream.read(via="consumer", idle_timeout=1) as messages:
                assert [message async for message in messages] == []
