"""`publish` passes its arguments to a request by position, so each must be at its own."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import js_async
import js_sync
from tests.unhurried import UNHURRIED
from twinstream.core.publish.request import publish_headers
from twinstream.records.publish_request import PublishRequest
from twinstream.testing import FakePeer, FakeServer, Operation

ARGUMENTS: dict[str, Any] = {
    "subject": "orders",
    "data": b"tea",
    "headers": {"Colour": "green"},
    "msg_id": "7",
    "expected_stream": "S",
    "expected_last_seq": 11,
    "expected_last_subject_seq": 12,
    "expected_last_subject_seq_subject": "orders.*",
    "expected_last_msg_id": "13",
    "rollup": "sub",
    "ttl": 14,
}
ACK = {"stream": "S", "seq": 1}


def answering(peer: FakePeer) -> None:
    peer.handshake()
    peer.answer(peer.expect("^HPUB orders "), ACK)
    peer.until_left()


def published(server: FakeServer) -> Operation:
    with js_sync.connect(server.url, **UNHURRIED) as connection:
        connection.jetstream().publish(**ARGUMENTS)
    return server.operations("^HPUB")[-1]


def published_in_a_loop(server: FakeServer) -> Operation:
    async def publish() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as connection:
            await connection.jetstream().publish(**ARGUMENTS)

    asyncio.run(publish())
    return server.operations("^HPUB")[-1]


def test_each_argument_is_its_own_field() -> None:
    assert set(ARGUMENTS) == set(PublishRequest._fields)
    request = PublishRequest(**ARGUMENTS)
    for publish in (published, published_in_a_loop):
        with FakeServer(answering) as server:
            sent = publish(server)
        assert (sent.subject, sent.payload) == (request.subject, request.data)
        assert sent.headers == publish_headers(request)


def test_every_field_of_a_request_is_an_argument() -> None:
    names = inspect.signature(js_sync.JetStream.publish).parameters
    assert set(PublishRequest._fields) <= set(names)
