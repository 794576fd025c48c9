"""Connections to a scripted server: handshakes, invalid bytes, half-open peers, closing."""

from __future__ import annotations

import pytest

import js_async as js
from js_async.consume.push import PushMessages
from js_async.consume.push_buffer import PushBuffer
from tests._async.flow import eventually, pause, together
from tests._async.scripted import scripted
from tests._async.streams import disconnected
from tests.inside import api_of, link_of, open_push
from twinstream.models import ConsumerConfig
from twinstream.testing import FakePeer, FakeServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)


def welcome(peer: FakePeer) -> None:
    peer.handshake()
    peer.until_left(timeout=60)


async def second_link(connection):
    return connection.is_connected and connection.stats.connects == 2


@pytest.mark.parametrize(
    ("greeting", "told"),
    [
        (lambda peer: peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "not a NATS protocol line"),
        (lambda peer: peer.send(b"INFO [1]\r\n"), "not a JSON object"),
        (lambda peer: peer.send(b'INFO {"max_payload":"x"}\r\n'), "wrong type"),
        (lambda peer: peer.close(), "before INFO came"),
        (
            lambda peer: (peer.info(), peer.expect("^CONNECT"), peer.reset()),
            "broke|reset",
        ),
        (
            lambda peer: (peer.info(), peer.expect("^CONNECT"), peer.close()),
            "broke before",
        ),
        (lambda peer: peer.error("Maximum Connections Exceeded"), "Maximum Connections"),
        (lambda peer: None, "no INFO within 0.3 s"),
    ],
)
async def test_greetings_that_go_wrong(greeting, told):
    def script(peer: FakePeer) -> None:
        peer.stop_answering()
        greeting(peer)

    # Only who sends nothing is waited for in vain.
    patience = 0.3 if "within 0.3 s" in told else 60
    with FakeServer(script) as server:
        with pytest.raises(js.ConnectionFailed, match=told):
            await js.connect(server.url, connect_timeout=patience, reconnect=None)


@pytest.mark.parametrize("every", [1, 5])
async def test_a_greeting_in_pieces(every):
    def script(peer: FakePeer) -> None:
        peer.split(every)
        connect = peer.handshake(version="2.14.1", connect_urls=["127.0.0.1:1"])
        assert connect["headers"] is True
        assert connect["no_responders"] is True
        peer.until_left()

    async with scripted(script) as connection:
        assert connection.server_info.version == "2.14.1"
        await connection.flush()


@pytest.mark.parametrize(
    "trouble",
    [
        lambda peer: peer.send(b"garbage\r\n"),
        lambda peer: peer.send(b"MSG a 1 5\r\nhel"),
        lambda peer: peer.send(b"MSG a 1 2\r\nhello\r\n"),
        lambda peer: peer.error("Stale Connection"),
        lambda peer: None,
    ],
)
async def test_lost_connection_is_restored(trouble):
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB news")
        trouble(peer)
        peer.close()

    def second(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB news")
        peer.message("news", b"back")
        peer.until_left()

    async with scripted(first, second, reconnect=QUICK) as connection:
        subscription = await connection.subscribe("news")
        assert (await subscription.next(timeout=60)).data == b"back"
        # The message may come before the keeper has noted that the link is whole.
        await eventually(second_link, connection)


async def test_late_caller_gets_the_reason_of_a_lost_connection(monkeypatch):
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.stop_answering()
        peer.expect("^PING")
        peer.error("Stale Connection")
        peer.close()

    async with scripted(first, welcome, reconnect=QUICK) as connection:
        link = link_of(connection)
        wait = link.wait

        async def slow(signal, deadline):
            monkeypatch.undo()
            came = await wait(signal, deadline)
            await eventually(second_link, connection)
            return came

        monkeypatch.setattr(link, "wait", slow)
        with pytest.raises(js.ConnectionLost, match=r"before the PONG .*Stale Connection"):
            await connection.flush(timeout=60)


async def test_a_peer_that_answers_no_ping_is_given_up():
    """The peer answers no PING. After two intervals the client reconnects."""

    def silent(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        peer.expect("^PING")
        peer.until_left()
        assert peer.count("^PING") <= 3

    with FakeServer(silent, welcome) as server:
        options = {"ping_interval": 0.1, "reconnect": QUICK}
        async with js.connect(server.url, **options) as connection:
            await eventually(second_link, connection)


async def test_a_peer_that_reads_nothing_is_given_up_though_a_write_is_stuck():
    """The kernel's buffers are full and a publish blocks. It must not block forever."""

    def deaf(peer: FakePeer) -> None:
        peer.handshake(max_payload=1 << 26)
        peer.expect("^SUB")
        peer.stop_reading()
        peer.reach("deaf")
        peer.wait_for("mended", timeout=60)
        peer.close()

    with FakeServer(deaf, welcome) as server:
        options = {"ping_interval": 0.3, "reconnect": QUICK}
        async with js.connect(server.url, **options) as connection:
            subscription = await connection.subscribe("x")

            async def is_deaf():
                return server.reached("deaf")

            async def publish():
                await eventually(is_deaf)
                await connection.publish("big", bytes(1 << 25))
                assert not subscription.is_closed

            async def mended():
                await eventually(second_link, connection)
                server.tell("mended")

            await together(publish, mended)


async def test_a_request_ends_in_time_though_a_write_is_stuck():
    def deaf(peer: FakePeer) -> None:
        peer.handshake(max_payload=1 << 26)
        peer.answer(peer.expect("^PUB ready"), b"")
        peer.stop_reading()
        peer.reach("deaf")
        peer.wait_for("over", timeout=60)
        peer.reset()

    with FakeServer(deaf, welcome) as server:
        async with js.connect(server.url, reconnect=QUICK) as connection:
            await connection.request("ready")
            link = link_of(connection)

            async def is_deaf():
                return server.reached("deaf")

            async def is_stuck():
                return link.is_full or getattr(link, "_sender", 0)

            async def waits_behind():
                return link.is_full or link._out_size > 1 << 15

            async def publish(size, condition):
                await eventually(condition)
                await connection.publish("big", bytes(size))

            async def ask():
                await eventually(waits_behind)
                with pytest.raises(js.RequestTimeout):
                    await connection.request("question", timeout=0.3)
                server.tell("over")

            first, second = (1 << 25, is_deaf), (1 << 16, is_stuck)
            await together(lambda: publish(*first), lambda: publish(*second), ask)
            await eventually(second_link, connection)


async def test_requests_in_flight_fail_with_the_connection():
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^PUB question")
        peer.reset()

    with FakeServer(first, rest=welcome) as server:
        async with js.connect(server.url, reconnect=QUICK) as connection:
            with pytest.raises(js.ConnectionLost, match="before the answer came"):
                await connection.request("question", timeout=20)


@pytest.mark.parametrize("way", ["fetch", "messages", "push"])
async def test_waiter_at_a_refused_subscription_is_notified(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        subject = peer.expect("^SUB ").subject
        peer.error(f'Permissions Violation for Subscription to "{subject}"')
        peer.until_left()

    async with scripted(script) as connection:
        jet = connection.jetstream()
        consumer = jet.bind_consumer("S", "c")
        config = ConsumerConfig(deliver_subject="here")
        push = PushMessages(PushBuffer(api_of(jet), "S", config, None))

        async def wait():
            if way == "fetch":
                await consumer.fetch(1, timeout=20)
            elif way == "messages":
                await consumer.messages().next(timeout=20)
            else:
                await open_push(push, "c")
                await push.next(timeout=20)

        with pytest.raises(js.PermissionDenied, match="Permissions Violation"):
            await wait()


async def test_flow_control_of_a_link_that_broke_ends_no_iteration():
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB here")
        peer.message("here", b"1", reply="$JS.ACK.S.c.1.1.1.17.0")
        peer.message("here", status="100 FlowControl Request", reply="$JS.FC.S.c.x")
        peer.fence()
        peer.wait_for("taken", timeout=60)
        peer.close()

    def second(peer: FakePeer) -> None:
        peer.wait_for("late", timeout=60)
        peer.handshake()
        peer.expect("^SUB here")
        peer.message("here", b"2", reply="$JS.ACK.S.c.1.2.2.17.0")
        peer.until_left()

    options = {"request_timeout": 0.2, "reconnect": QUICK}
    with FakeServer(first, second) as server:
        async with js.connect(server.url, connect_timeout=20, **options) as connection:
            jet = connection.jetstream()
            config = ConsumerConfig(deliver_subject="here")
            push = PushMessages(PushBuffer(api_of(jet), "S", config, None))
            await open_push(push, "c")
            assert (await push.next(timeout=60)).data == b"1"
            server.tell("taken")

            async def broken():
                return not connection.is_connected

            async def take():
                assert (await push.next(timeout=60)).data == b"2"

            async def link():
                await pause(0.5)
                server.tell("late")

            await eventually(broken)
            await together(take, link)


async def test_stalled_push_consumer_is_answered_after_earlier_messages():
    """A heartbeat names the flow control subject on which the server waits (its reply was lost)."""
    stalled = {"Nats-Last-Consumer": 2, "Nats-Last-Stream": 2, "Nats-Consumer-Stalled": "$JS.FC.x"}

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB here")
        peer.message("here", b"1", reply="$JS.ACK.S.c.1.1.1.17.0")
        peer.message("here", b"2", reply="$JS.ACK.S.c.1.2.2.17.0")
        peer.message("here", status="100 Idle Heartbeat", headers=stalled)
        peer.fence()
        assert peer.count(r"JS\.FC") == 0
        peer.reach("behind them")
        answer = peer.expect(r"^PUB \$JS\.FC\.x ")
        assert (answer.subject, answer.payload) == ("$JS.FC.x", b"")
        # Nothing stalls here, so that nothing is to be answered.
        peer.message("here", status="100 Idle Heartbeat", headers={"Nats-Last-Consumer": 2})
        peer.message("here", b"3", reply="$JS.ACK.S.c.1.3.3.17.0")
        peer.wait_for("taken", timeout=60)
        peer.fence()
        assert peer.count(r"JS\.FC") == 1
        peer.reach("counted")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            config = ConsumerConfig(deliver_subject="here")
            push = PushMessages(PushBuffer(api_of(jet), "S", config, None))
            await open_push(push, "c")
            assert (await push.next(timeout=60)).data == b"1"

            async def reached(step):
                return server.reached(step)

            await eventually(reached, "behind them")
            assert [(await push.next(timeout=60)).data for _ in range(2)] == [b"2", b"3"]
            server.tell("taken")
            await eventually(reached, "counted")


async def test_closing_wakes_every_wait():
    """Each call raises its documented error, at whatever time any caller calls `close`."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        # In any order.
        wanted = ["NEXT.S.a", "NEXT.S.b", "NEXT.S.c", "question"]
        while wanted:
            subject = peer.expect("^PUB (.*NEXT|question)").subject
            wanted = [each for each in wanted if not subject.endswith(each)]
        peer.reach("all wait")
        peer.until_left()

    with FakeServer(script) as server:
        connection = await js.connect(server.url)
        jet = connection.jetstream()
        subscription = await connection.subscribe("news")

        async def fetch():
            return (await jet.bind_consumer("S", "a").fetch(1, timeout=60)).reason

        async def take():
            return await jet.bind_consumer("S", "b").next(timeout=60)

        async def iterate():
            with pytest.raises(js.ConnectionClosed):
                await jet.bind_consumer("S", "c").messages().next(timeout=60)

        async def ask():
            with pytest.raises(js.ConnectionClosed):
                await connection.request("question", timeout=60)

        async def listen():
            with pytest.raises(js.ConnectionClosed):
                await subscription.next()

        async def all_wait():
            return server.reached("all wait")

        async def close():
            await eventually(all_wait)
            await connection.close()

        ended = await together(fetch, take, iterate, ask, listen, close)
        assert ended[:2] == [js.BatchEnd.INTERRUPTED, None]
        assert connection.is_closed
        with pytest.raises(js.ConnectionClosed):
            await connection.flush()


async def test_closing_during_a_reconnect():
    """The next server accepts the connection and sends nothing. Closing ends this attempt, too."""

    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.close()

    def silent(peer: FakePeer) -> None:
        peer.reach("greeting")
        peer.until_left()

    with FakeServer(first, silent) as server:
        options = {"reconnect": QUICK, "connect_timeout": 30}
        connection = await js.connect(server.url, **options)

        async def greeting():
            return server.reached("greeting")

        await eventually(greeting)
        await connection.close()
        assert connection.is_closed
        assert not connection.is_connected


async def test_late_connect_to_a_closed_connection_is_dropped():
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.close()

    def late(peer: FakePeer) -> None:
        peer.reach("greeting")
        peer.wait_for("closed")
        peer.until_left()
        assert peer.operations == []

    with FakeServer(first, late) as server:
        options = {"reconnect": QUICK, "connect_timeout": 30}
        connection = await js.connect(server.url, **options)

        async def greeting():
            return server.reached("greeting")

        await eventually(greeting)
        await connection.close()
        server.tell("closed")
        with pytest.raises(js.ConnectionClosed):
            await connection.publish("x")


async def test_what_the_next_server_does_not_take_is_refused_before_it_cuts_the_link():
    def first(peer: FakePeer) -> None:
        peer.handshake(max_payload=1000)
        peer.close()

    def smaller(peer: FakePeer) -> None:
        peer.wait_for("waiting")
        peer.handshake(max_payload=10)
        peer.until_left()
        assert peer.count("^PUB") == 0

    with FakeServer(first, smaller) as server:
        events = []
        options = {"reconnect": QUICK, "on_event": events.append}
        async with js.connect(server.url, **options) as connection:
            await eventually(disconnected, events)

            async def publish():
                with pytest.raises(js.BadArgument, match="100 bytes with headers"):
                    await connection.publish("x", b"x" * 100)

            async def let_on():
                server.tell("waiting")

            await together(publish, let_on)


@pytest.mark.parametrize("error", [RuntimeError("sealed"), js.BadArgument("half a file")])
async def test_credentials_that_cannot_be_had_for_a_moment_do_not_end_the_connection(error):
    tries = []

    def credentials():
        tries.append(1)
        if len(tries) == 2:
            raise error
        return js.Credentials(user="ann", password="pw")

    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.close()

    with FakeServer(first, welcome) as server:
        options = {"reconnect": QUICK, "credentials": credentials}
        async with js.connect(server.url, **options) as connection:
            await eventually(second_link, connection)
