"""Single messages without a consumer: by sequence, last, next and by time; `direct` or not."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta

import pytest

import js_async as js
from tests._async.flow import eventually
from tests._async.scripted import scripted
from tests.inside import session_of
from twinstream.errors import InvalidResponse
from twinstream.models import StreamConfig
from twinstream.testing import FakePeer

BOTH = pytest.mark.parametrize("direct", [False, True])


async def stored(jet, name, **options):
    config = StreamConfig(name=name, subjects=[f"{name}.>"], **options)
    stream = await jet.create_stream(config)
    for number in range(6):
        await jet.publish(f"{name}.{number % 2}", b"%d" % number, headers={"N": str(number)})
    await stream.delete_message(3)
    return stream


async def test_header_block_without_its_end_is_parsed_as_far_as_possible(server, name):
    blocks = (b"NATS/1.0\r\nA: 1", b"NATS/1.0\r\nA: 1\r\n", b"NATS/1.0\r\nA: 1\r\n\r\n")
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_direct=True)
        stream = await jet.create_stream(config)
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(b'CONNECT {"headers": true}\r\n')
            for number, block in enumerate(blocks):
                head = b"HPUB %b.%d %d %d" % (name.encode(), number, len(block), len(block) + 1)
                sock.sendall(head + b"\r\n" + block + b"x\r\n")
            sock.sendall(b"PING\r\n")
            while b"PONG" not in sock.recv(4096):
                pass

        # Read from the link is not stored yet.
        async def stored():
            return (await stream.info()).state.messages == len(blocks)

        await eventually(stored)
        reads = {
            "direct": [message async for message in stream.read(via="direct")],
            "leader": [message async for message in stream.read(via="leader")],
            "consumer": [message async for message in stream.read(via="consumer")],
            "get": [await stream.get_message(seq, direct=True) for seq in (1, 2, 3)],
            "snapshot": list((await stream.snapshot()).values()),
        }
        for way, found in reads.items():
            assert [(each.seq, each.data) for each in found] == [(1, b"x"), (2, b"x"), (3, b"x")]
            # The server cuts two bytes of the block where it appends lines: in direct gets.
            first = "1" if way in {"leader", "consumer"} else ""
            assert [each.headers.get("A") for each in found] == [first, "1", "1"], way


@BOTH
@pytest.mark.parametrize("allowed", [False, True])
async def test_one_message_by_sequence_last_and_next(opened, name, direct, allowed):
    async with opened() as jet:
        stream = await stored(jet, name, allow_direct=allowed)
        second = await stream.get_message(2, direct=direct)
        assert (second.subject, second.seq, second.data) == (f"{name}.1", 2, b"1")
        assert dict(second.headers) == {"N": "1"}
        assert second == await stream.get_message(2)
        last = await stream.get_last_message(f"{name}.0", direct=direct)
        assert (last.seq, last.data) == (5, b"4")
        after = await stream.get_next_message(f"{name}.0", seq=2, direct=direct)
        assert after.seq == 5
        assert (await stream.get_next_message(direct=direct)).seq == 1
        assert (await stream.get_next_message(f"{name}.*", seq=3, direct=direct)).seq == 4


@pytest.mark.parametrize("line", ["404 Message Not Found", "204 EOB", "503"])
async def test_headers_that_begin_like_a_status_are_a_messages(server, name, line):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        config = StreamConfig(name=name, subjects=[f"{name}.*"], allow_direct=True)
        stream = await jet.create_stream(config)
        block = f"NATS/1.0 {line}\r\nA: 1\r\n\r\n".encode()
        for number in range(3):
            headers = block if number == 1 else b""
            await session_of(connection).send(f"{name}.{number}".encode(), b"", headers, b"x")
        await connection.flush()

        async def stored():
            return (await stream.info()).state.messages == 3

        await eventually(stored)
        assert dict((await stream.get_message(2, direct=True)).headers) == {"A": "1"}
        for via in ("direct", "consumer", "leader"):
            read = stream.read(via=via, idle_timeout=30)
            assert [dict(message.headers) async for message in read] == [{}, {"A": "1"}, {}]
        assert [message.seq for message in (await stream.snapshot(idle_timeout=30)).values()] == [
            1,
            2,
            3,
        ]


@BOTH
async def test_the_last_message_of_the_longest_subject(opened, name, direct):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        stream = await jet.create_stream(config)
        subject = f"{name}.".ljust(3000, "x")
        await jet.publish(subject, b"far")
        found = await stream.get_last_message(subject, direct=direct)
        assert (found.subject, found.data) == (subject, b"far")


@BOTH
async def test_missing_objects_are_reported(opened, name, direct):
    async with opened() as jet:
        stream = await stored(jet, name, allow_direct=True)
        for call in (
            lambda: stream.get_message(3, direct=direct),
            lambda: stream.get_last_message(f"{name}.9", direct=direct),
            lambda: stream.get_next_message(seq=7, direct=direct),
            lambda: stream.get_next_message(f"{name}.9", direct=direct),
        ):
            with pytest.raises(js.MessageNotFound) as caught:
                await call()
            assert caught.value.err_code == 10037
        await jet.delete_stream(name)
        with pytest.raises(js.StreamNotFound):
            await stream.get_message(1, direct=direct)


@BOTH
async def test_the_next_message_by_time(opened, name, direct):
    async with opened() as jet:
        stream = await stored(jet, name, allow_direct=True)
        fourth = await stream.get_message(4)
        found = await stream.get_next_message(start_time=fourth.time, direct=direct)
        assert found.seq == 4
        found = await stream.get_next_message(f"{name}.0", start_time=fourth.time, direct=direct)
        assert found.seq == 5
        late = fourth.time + timedelta(hours=1)
        with pytest.raises(js.MessageNotFound):
            await stream.get_next_message(start_time=late, direct=direct)


@BOTH
async def test_headers_are_omitted_if_not_requested(opened, name, direct):
    async with opened() as jet:
        stream = await stored(jet, name, allow_direct=True)
        bare = await stream.get_message(2, direct=direct, headers=False)
        assert (bare.subject, bare.seq, bare.data, dict(bare.headers)) == (f"{name}.1", 2, b"1", {})
        last = await stream.get_last_message(f"{name}.1", direct=direct, headers=False)
        assert (last.seq, dict(last.headers)) == (6, {})


async def test_wrong_questions_never_leave(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name)
        now = (await stream.get_message(1)).time
        for call in (
            lambda: stream.get_message(0),
            lambda: stream.get_message("1"),
            lambda: stream.get_last_message("a..b"),
            lambda: stream.get_next_message(seq=1, start_time=now),
            lambda: stream.get_next_message(start_time=datetime(2024, 1, 1)),
            lambda: stream.get_next_message(start_time="yesterday"),
        ):
            with pytest.raises(js.BadArgument):
                await call()


async def test_statuses_of_a_direct_get_are_errors_with_their_code():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for code, text in ((408, "Bad Request"), (500, "oops"), (404, "Message Not Found")):
            asked = peer.expect(r"^PUB \$JS\.API\.DIRECT\.GET\.S")
            peer.message(asked.reply, b"", status=f"{code} {text}")
        asked = peer.expect(r"^PUB \$JS\.API\.DIRECT\.GET\.S")
        peer.message(asked.reply, b"not the server", headers={"Who": "me"})

    async with scripted(script) as connection:
        stream = connection.jetstream().bind_stream("S")
        for code in (408, 500):
            with pytest.raises(js.JetStreamError) as caught:
                await stream.get_message(1, direct=True)
            assert caught.value.code == code
        with pytest.raises(js.MessageNotFound):
            await stream.get_last_message("s.*", direct=True)
        with pytest.raises(InvalidResponse, match="direct get"):
            await stream.get_message(1, direct=True)
