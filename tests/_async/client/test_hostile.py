"""Attacks by another client or a malicious server, which must not break a connection."""

from __future__ import annotations

import socket
import struct

import pytest

import js_async as js
from js_async.exactly_once import SubjectWriter
from tests._async.flow import eventually, together
from tests._async.scripted import scripted
from tests.descriptors import socket_to
from tests.inside import session_of
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer, FakeServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
LONG_STATUS = b"NATS/1.0 " + b"5" * 5000 + b"\r\n\r\n"


def odd_headers(block: bytes, data: bytes = b"") -> bytes:
    """Return the HMSG line after the subject and the sid, and the data that follows."""
    return b"%d %d\r\n%b%b\r\n" % (len(block), len(block) + len(data), block, data)


async def one_publish(jet):
    await jet.publish("s", timeout=0.5)


async def many(jet):
    async with jet.publish_many([("s", b"")], timeout=0.5) as outcomes:
        async for outcome in outcomes:
            raise outcome.error


@pytest.mark.parametrize("call", [one_publish, many])
@pytest.mark.parametrize(
    "rest",
    [
        odd_headers(LONG_STATUS),
        odd_headers(b"", b'{"stream":"S","seq":-1}'),
        odd_headers(b"", b'{"stream":"S","seq":36893488147419103232}'),
        odd_headers(b"", b'{"error":5,"stream":"S","seq":1}'),
        odd_headers(b"", b'{"error":"no","stream":"S","seq":1}'),
    ],
    ids=range(5),
)
async def test_an_odd_answer_neither_ends_the_connection_nor_counts_as_success(call, rest):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for operation in peer.follow():
            if operation.verb == "PUB" and operation.reply:
                sid = peer.sid(operation.reply)
                peer.send(f"HMSG {operation.reply} {sid} ".encode() + rest)

    async with scripted(script, reconnect=QUICK) as connection:
        with pytest.raises(js.TwinstreamError):
            await call(connection.jetstream())
        await connection.flush()
        assert connection.stats.connects == 1


async def test_a_subscriber_that_answers_with_nonsense_leaves_publishers_connected(server, name):
    async with js.connect(server.url) as other, js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=0.5)
        listener = await other.subscribe(name)
        await other.flush()

        async def answer():
            for _ in range(10):
                message = await listener.next(timeout=60)
                await session_of(other).send(message.reply.encode(), b"", LONG_STATUS, b"")
            await other.flush()

        async def publish():
            async with jet.publish_many([(name, b"")] * 10, raise_failures=False) as outcomes:
                return [type(outcome) async for outcome in outcomes]

        _, failed = await together(answer, publish)
        assert failed == [js.PublishFailure] * 10
        await connection.flush()
        assert connection.stats.connects == 1


async def test_foreign_messages_in_the_inbox_of_a_pull_are_ignored(server, name):
    async with js.connect(server.url) as other, js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        pulls = await other.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{name}.c")
        await other.flush()
        async with consumer.messages() as messages:
            assert await messages.next(timeout=0.1) is None
            pull = await pulls.next(timeout=60)
            inbox = pull.reply.encode()
            huge = b"$JS.ACK.%b.c.1.%b.1.%b.0" % (name.encode(), b"9" * 1000, b"9" * 300)
            pin = b"NATS/1.0\r\nNats-Pin-Id: \xff\r\n\r\n"
            pending = b"NATS/1.0 100\r\nNats-Pending-Messages: " + b"1" * 5000 + b"\r\n\r\n"
            for reply, headers in ((b"", LONG_STATUS), (huge, b""), (b"", pin), (b"", pending)):
                await session_of(other).send(inbox, reply, headers, b"odd")
            await other.flush()
            await jet.publish(name, b"true")
            seen = []
            while not seen or seen[-1] != b"true":
                seen.append((await messages.next(timeout=60)).data)
        assert connection.stats.connects == 1


async def test_undeliverable_message_is_dropped_and_reported(server, name, caplog):
    events = []

    def broken(_):
        raise RuntimeError("a fault in here")

    async with js.connect(server.url, on_event=events.append) as connection:
        subscription = await connection.subscribe(name)
        session, odd = session_of(connection), f"{name}.odd".encode()
        box = await session.open_mailbox(odd, sink=lambda box: broken)
        for _ in range(5):
            await connection.publish(f"{name}.odd")
        await connection.publish(name, b"next")
        assert (await subscription.next(timeout=60)).data == b"next"
        await connection.flush()
        assert connection.stats.connects == 1
        await session.close_mailbox(box)
    dropped = [event for event in events if isinstance(event, js.MessagesDropped)]
    assert [each.dropped for each in dropped] == [1, 2, 4]
    assert {each.subject for each in dropped} == {f"{name}.odd"}
    [logged] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "a fault in here" in logged.getMessage()
    assert logged.exc_info is not None


async def test_an_event_on_a_subject_that_is_no_text_is_handed_over(server):
    async with js.connect(server.url) as other, js.connect(server.url) as connection:
        async with connection.jetstream().events() as events:
            await connection.flush()
            await session_of(other).send(b"$JS.EVENT.ADVISORY.\xff", b"", b"", b"{}")
            event = await events.next(timeout=60)
            assert event.subject == "$JS.EVENT.ADVISORY.\udcff"


async def test_the_answers_to_many_pings_are_written_together():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.send(b"PING\r\n" * 1000)
        for _ in range(1000):
            peer.expect("^PONG")
        peer.reach("answered")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:

            async def answered():
                return server.reached("answered")

            await eventually(answered)
            assert connection.is_connected
            with socket_to(server.port) as sock:
                info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
    # Linux counts the segments with data that it sent (`tcpi_data_segs_out`).
    [segments] = struct.unpack_from("I", info, 156)
    assert 0 < segments < 10


async def test_a_refusal_that_quotes_the_login_shows_no_secret():
    def quoting(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.info()
        peer.error(f"Unknown Protocol Operation {peer.expect('^CONNECT').line}")
        peer.close()

    def later(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB")
        peer.error("Authorization Violation of s3cret")
        peer.close()

    events = []
    with FakeServer(quoting, later) as server:
        options = {"user": "ann", "password": "s3cret", "reconnect": None}
        with pytest.raises(js.ConnectionFailed, match="Unknown Protocol Operation") as caught:
            await js.connect(server.url, **options)
        assert "s3cret" not in str(caught.value)
        async with js.connect(server.url, on_event=events.append, **options) as connection:
            subscription = await connection.subscribe("x")

            async def reported():
                return [each for each in events if isinstance(each, js.ServerReported)]

            (event,) = await eventually(reported)
            assert event.text == "Authorization Violation of ***"

            async def closed():
                return connection.is_closed

            await eventually(closed)
            for call in (lambda: connection.publish("x"), subscription.next):
                with pytest.raises(js.ConnectionClosed, match=r"Violation of \*\*\*"):
                    await call()


@pytest.mark.parametrize("id", [" a", "a ", "a\t", " ", ""])
async def test_a_message_id_that_the_server_would_change_is_refused(server, name, id):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        config = StreamConfig(
            name=name,
            subjects=[f"{name}.>"],
            max_msgs_per_subject=1,
        )
        stream = await jet.create_stream(config)
        subject = f"{name}.a"
        for publish in (
            lambda: jet.publish(subject, msg_id=id),
            lambda: SubjectWriter(jet).upsert(subject, msg_id=id),
            lambda: jet.publish(subject, expected_last_msg_id=id),
            lambda: jet.publish(subject, headers={"Nats-Msg-Id": id}),
            lambda: jet.publish(subject, headers={"Nats-Msg-Id": [id]}, expected_last_seq=0),
            lambda: jet.publish(subject, headers={"Nats-Expected-Last-Msg-Id": id}),
        ):
            with pytest.raises(js.BadArgument, match="blank"):
                await publish()
        request = js.PublishRequest(subject, msg_id=id)
        async with jet.publish_many([request], raise_failures=False) as outcomes:
            (failure,) = [outcome async for outcome in outcomes]
        assert isinstance(failure.error, js.BadArgument)
        assert (await stream.info()).state.messages == 0
