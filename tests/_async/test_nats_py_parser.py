"""The parser that replaces nats-py's: the application and the SDK read from one connection."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

import nats
import pytest
from nats.protocol.parser import Parser as TheirParser

import js_async as js
from js_async.nats_py.parser import OwnParser, take_over
from tests.descriptors import socket_to
from tests.odd_messages import publish_raw
from twinstream.models import ConsumerConfig, StreamConfig

COUNT = 300


@asynccontextmanager
async def connected(server, **options):
    client = await nats.connect(server.url, **options)
    try:
        yield client
    finally:
        await client.close()


async def filled(jet, name):
    """Return a consumer of a stream with some messages, every second one with headers."""
    stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
    for number in range(COUNT):
        headers = {"Number": str(number)} if number % 2 else None
        await jet.publish(name, b"%d" % number, headers=headers)
    return await stream.create_consumer(ConsumerConfig(durable_name="c"))


async def test_both_get_their_messages_in_order(server, name):
    async with connected(server) as client:
        jet = js.from_nats(client, timeout=10, own_parser=True)
        consumer = await filled(jet, name)
        theirs = []

        async def note(message):
            theirs.append((message.data, dict(message.headers or {})))

        await client.subscribe(f"{name}.theirs", cb=note)
        ours, received = [], client.stats["in_msgs"]
        async with consumer.messages(stop_after=COUNT) as messages:
            async for message in messages:
                headers = {"Number": message.data.decode()}
                await client.publish(f"{name}.theirs", message.data, headers=headers)
                ours.append(message.data)
                await message.ack()
        await client.flush()
        wanted = [b"%d" % number for number in range(COUNT)]
        assert ours == wanted
        await reached(lambda: len(theirs) == COUNT)
        assert [data for data, _ in theirs] == wanted
        assert theirs[7] == (b"7", {"Number": "7"})
        assert client.stats["in_msgs"] >= received + 2 * COUNT
        assert client.stats["in_bytes"] > 0
        # Their own JetStream code goes on working.
        info = await client.jetstream().stream_info(name)
        assert info.state.messages == COUNT


async def reached(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def parser_of(client):
    """Return the private parser of a client of nats-py."""
    return client._ps


async def test_contexts_of_one_client_share_the_parser(server, name):
    async with connected(server) as client:
        first = js.from_nats(client, own_parser=True)
        parser = parser_of(client)
        assert isinstance(parser, OwnParser)
        second = js.from_nats(client, own_parser=True)
        assert parser_of(client) is parser
        await filled(first, name)
        stream = await second.get_stream(name)
        assert (await stream.get_message(3)).data == b"2"


async def test_iteration_continues_over_a_new_connection(server_factory, name):
    with server_factory() as server:
        async with connected(server, reconnect_time_wait=0.05) as client:
            jet = js.from_nats(client, timeout=10, own_parser=True)
            await filled(jet, name)
            with socket_to(server.port) as sock:
                sock.shutdown(socket.SHUT_RDWR)
            await reached(lambda: client.stats["reconnects"] == 1 and client.is_connected)
            consumer = await jet.get_consumer(name, "c")
            batch = await consumer.fetch(COUNT, timeout=20)
            assert [message.data for message in batch] == [b"%d" % n for n in range(COUNT)]


async def test_what_no_server_sends_is_an_error_of_nats_py(server):
    async with connected(server) as client:
        parser = take_over(client)
        with pytest.raises(nats.errors.ProtocolError):
            await parser.parse(b"NONSENSE here\r\n")
        parser.reset()
        await parser.parse(b"+OK\r\n")


class Client:
    """The members of a client that a parser uses."""

    max_payload = 1 << 20

    def __init__(self):
        self._ps = TheirParser(self)
        self.stats = {"in_msgs": 0, "in_bytes": 0}
        self.seen = []

    async def _process_msg(self, *parts):
        self.seen.append(parts)

    async def _process_pong(self):
        self.seen.append("pong")

    async def _process_err(self, text):
        self.seen.append(text)

    async def _process_info(self, info):
        self.seen.append(info)


WIRE = (
    b"MSG a 1 5\r\nhello\r\nPONG\r\nHMSG b 2 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
    b"-ERR 'Stale Connection'\r\n" + b'INFO {"x":1}\r\n'
)
SEEN = [
    (1, b"a", b"", b"hello", None),
    "pong",
    (2, b"b", b"r", b"hi", b"NATS/1.0\r\n\r\n"),
    "'stale connection'",
    {"x": 1},
]


@pytest.mark.parametrize("cut", range(len(WIRE)))
async def test_it_may_take_over_anywhere_in_the_stream(cut):
    client = Client()
    await parser_of(client).parse(WIRE[:cut])
    parser = take_over(client)
    for byte in WIRE[cut:]:
        await parser.parse(bytes([byte]))
    assert client.seen == SEEN


async def test_an_unknown_release_keeps_its_parser(server, name, monkeypatch, tmp_path):
    about = tmp_path / "nats_py-2.99.0.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: nats-py\nVersion: 2.99.0\n")
    async with connected(server) as client:
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            with pytest.warns(RuntimeWarning, match=r"nats-py 2\.99\.0 .* its own parser stays"):
                jet = js.from_nats(client, timeout=10, own_parser=True)
        assert isinstance(parser_of(client), TheirParser)
        consumer = await filled(jet, name)
        assert len(await consumer.fetch(COUNT, timeout=10)) == COUNT


async def test_messages_that_no_client_would_send_are_read(server, name):
    """The parser of nats-py fails at some of them, and loses the connection."""
    async with connected(server) as client:
        jet = js.from_nats(client, timeout=10, own_parser=True)
        stream = await jet.create_stream(
            StreamConfig(name=name, subjects=[name], allow_direct=True)
        )
        messages = publish_raw(server.port, name)
        await jet.publish(name, b"last")
        payloads = [each.data for each in messages] + [b"last"]
        assert [message.data async for message in stream.read(via="direct")] == payloads
        async with stream.ordered() as ordered:
            assert [(await ordered.next(10)).data for _ in payloads] == payloads
