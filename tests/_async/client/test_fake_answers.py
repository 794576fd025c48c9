"""Responses in any form: alone in a read, in parts, or together with other messages."""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.scripted import scripted
from twinstream.testing import FakePeer
from twinstream.testing.fake_wire import message_frame

ORDERS = r"^H?PUB orders "


def ack(seq: int) -> bytes:
    return b'{"stream":"S", "seq":%d}' % seq


def frame(peer: FakePeer, request, seq: int) -> bytes:
    return message_frame(request.reply, peer.sid(request.reply), "", b"", ack(seq))


def learn(peer: FakePeer) -> None:
    """Acknowledge one message, so that the client expects similar acknowledgements."""
    peer.handshake()
    peer.answer(peer.expect(ORDERS), ack(1))


def alone(peer: FakePeer, request) -> None:
    peer.answer(request, ack(2))


def after_a_ping(peer: FakePeer, request) -> None:
    peer.send(b"PING\r\n" + frame(peer, request, 2))
    peer.expect("^PONG")


def before_a_ping(peer: FakePeer, request) -> None:
    peer.send(frame(peer, request, 2) + b"PING\r\n")
    peer.expect("^PONG")


def in_two_parts(peer: FakePeer, request) -> None:
    whole = frame(peer, request, 2)
    peer.send(b"PING\r\n" + whole[:-9])
    peer.expect("^PONG")
    peer.send(whole[-9:])


def byte_by_byte(peer: FakePeer, request) -> None:
    peer.split(1)
    peer.answer(request, ack(2))
    peer.split(None)


def twice(peer: FakePeer, request) -> None:
    for seq in (2, 9):
        peer.answer(request, ack(seq))


def behind_a_stray(peer: FakePeer, request) -> None:
    stray = b"x" * len(ack(2))
    peer.answer(request, stray)
    # Nobody asks who that was before it was taken.
    peer.expect(r"STREAM\.NAMES")
    peer.answer(request, ack(2))


def of_another_length(peer: FakePeer, request) -> None:
    peer.answer(request, b'{"stream":"S","seq":2,"domain":"' + 997 * b"d" + b'"}')


@pytest.mark.parametrize(
    "way",
    [
        alone,
        after_a_ping,
        before_a_ping,
        in_two_parts,
        byte_by_byte,
        twice,
        behind_a_stray,
        of_another_length,
    ],
    ids=lambda way: way.__name__,
)
async def test_an_acknowledgement_is_the_same_however_it_arrives(way):
    def script(peer: FakePeer) -> None:
        learn(peer)
        way(peer, peer.expect(ORDERS))
        peer.answer(peer.expect(ORDERS), ack(3))

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=30)
        assert (await jet.publish("orders", b"a")).seq == 1
        assert (await jet.publish("orders", b"b")).seq == 2
        # The second of two answers may come while the next one is waited for.
        assert (await jet.publish("orders", b"c")).seq == 3
        assert connection.stats.open_requests == 0


async def test_what_looks_like_the_answer_inside_a_message_is_none():
    def script(peer: FakePeer) -> None:
        learn(peer)
        request = peer.expect(ORDERS)
        inside = frame(peer, request, 9)
        size = len(b"first " + inside) - 2
        line = f"MSG news {peer.sid('news')} {size}\r\n".encode()
        peer.send(b"PING\r\n" + line + b"first ")
        peer.expect("^PONG")
        peer.send(inside)
        peer.fence()
        peer.answer(request, ack(2))

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=30)
        news = await connection.subscribe("news")
        assert (await jet.publish("orders")).seq == 1
        assert (await jet.publish("orders")).seq == 2
        message = await news.next(timeout=60)
        assert message.data.startswith(b"first MSG _INBOX.")
        assert message.data.endswith(ack(9))


async def test_subscriber_to_everything_gets_the_response_too():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        everything, inbox = peer.expect("^SUB > "), peer.expect("^SUB _INBOX")
        for seq in (1, 2, 3):
            request = peer.expect(ORDERS)
            for listener in (everything, inbox):
                peer.send(message_frame(request.reply, listener.sid, "", b"", ack(seq)))

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=30)
        everything = await connection.subscribe(">")
        for seq in (1, 2, 3):
            assert (await jet.publish("orders")).seq == seq
        heard = [(await everything.next(timeout=60)).data for _ in range(3)]
    assert heard == [ack(1), ack(2), ack(3)]


async def test_an_answer_without_its_end_breaks_the_link():
    def script(peer: FakePeer) -> None:
        learn(peer)
        whole = frame(peer, peer.expect(ORDERS), 2)
        peer.send(whole[:-2] + b"!!")

    def again(peer: FakePeer) -> None:
        learn(peer)

    quick = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
    async with scripted(script, again, reconnect=quick) as connection:
        jet = connection.jetstream(timeout=30)
        assert (await jet.publish("orders")).seq == 1
        with pytest.raises(js.ConnectionLost, match="message size"):
            await jet.publish("orders")
        assert (await jet.publish("orders")).seq == 1
