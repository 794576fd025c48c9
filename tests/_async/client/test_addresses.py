"""The order in which addresses are tried, and which announced addresses are accepted."""

from __future__ import annotations

import socket
import threading

import pytest

import js_async as js
from tests._async.flow import eventually
from tests.certificates import make_certificates
from tests.fake.names import full, replacing, resolving
from tests.meddler import meddled
from tests.stalls import attempts
from twinstream.core.deadline import monotonic
from twinstream.testing import FakePeer, FakeServer, NatsCluster

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)


def welcome(peer: FakePeer) -> None:
    peer.handshake()
    peer.until_left(timeout=60)


async def second_link(connection):
    return connection.is_connected and connection.stats.connects == 2


@pytest.mark.parametrize("shuffle", [True, False])
async def test_an_address_that_answers_nothing_leaves_time_for_the_next(monkeypatch, shuffle):
    for attempt in attempts(4):
        with attempt, full() as silent, FakeServer(rest=welcome) as server:
            resolving(monkeypatch, both=[silent[1], server.port])
            for _ in range(1 if shuffle is False else 3):
                async with js.connect(
                    "nats://both", connect_timeout=4, shuffle=shuffle
                ) as connection:
                    assert connection.is_connected


async def test_an_address_that_refuses_is_passed_over(monkeypatch):
    with socket.socket() as nobody, FakeServer(welcome) as server:
        nobody.bind(("127.0.0.1", 0))
        resolving(monkeypatch, both=[nobody.getsockname()[1], server.port])
        async with js.connect("nats://both", shuffle=False) as connection:
            assert connection.is_connected


async def test_the_error_of_a_name_is_that_of_its_addresses(monkeypatch):
    with full() as silent, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        refusing = nobody.getsockname()[1]
        resolving(monkeypatch, one=[silent[1]], two=[silent[1], refusing], none=[])
        options = {"connect_timeout": 0.2, "shuffle": False}
        for name, text in (
            ("one", "no connection in time"),
            ("two", "refused|failed"),
            ("none", "no add"),
        ):
            for attempt in attempts(0.2):
                with attempt, pytest.raises(js.ConnectionFailed, match=text):
                    await js.connect(f"nats://{name}", **options)


async def test_a_slow_resolver_leaves_time_for_the_next_server(monkeypatch):
    released, asked, answered = threading.Event(), [], []

    def answer(resolve, host):
        if host != "slow":
            return resolve()
        asked.append(host)
        if len(asked) % 2 == 0:
            released.wait(60)
            answered.append(host)
        # The first question is whether the name is a number.
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    replacing(monkeypatch, answer)
    try:
        for attempt in attempts(1):
            asked.clear()
            with attempt, FakeServer(welcome) as server:
                servers = ["nats://slow", server.url]
                async with js.connect(servers, connect_timeout=1, shuffle=False) as connection:
                    assert connection.is_connected
        unresolved = "the name slow was not resolved in time"
        for attempt in attempts(0.1):
            asked.clear()
            with attempt, pytest.raises(js.ConnectionFailed, match=unresolved):
                await js.connect("nats://slow", connect_timeout=0.1)
        assert not answered
    finally:
        released.set()


@pytest.mark.parametrize(("shuffle", "wanted"), [(True, 2), (False, 1)])
async def test_clients_spread_over_the_addresses_of_a_name(monkeypatch, shuffle, wanted):
    with FakeServer(rest=welcome) as one, FakeServer(rest=welcome) as other:
        resolving(monkeypatch, both=[one.port, other.port])
        for _ in range(40):
            await (await js.connect("nats://both", shuffle=shuffle)).close()
        used = [server.connections for server in (one, other) if server.connections]
        assert len(used) == wanted
        assert sum(used) == 40


@pytest.mark.parametrize("announced", ["x" * 64 + ":4222", "a..b:4222", "[fe80::1%25nope]:4222"])
async def test_unusable_announced_address_does_not_delay_a_reconnect(announced):
    def first(peer: FakePeer) -> None:
        peer.handshake(connect_urls=[announced])
        peer.expect("^SUB")
        peer.close()

    with FakeServer(first, welcome) as server:
        policy = js.ReconnectPolicy(attempts=3, wait=0.01, max_wait=0.05)
        async with js.connect(server.url, reconnect=policy) as connection:
            async with connection.subscribe("x"):
                await eventually(second_link, connection)


@pytest.mark.parametrize("error", [UnicodeError("no label"), ValueError("odd"), OverflowError()])
async def test_next_address_is_tried_after_any_error(monkeypatch, error):
    with FakeServer(rest=welcome) as server:
        asked = resolving(monkeypatch, good=[server.port])

        def answer(resolve, host):
            if host == "bad":
                raise error
            return resolve()

        replacing(monkeypatch, answer)
        async with js.connect("nats://bad,nats://good", shuffle=False) as connection:
            assert asked == ["good"]
            assert connection.is_connected
        with pytest.raises(js.ConnectionFailed, match=f"bad:4222: {type(error).__name__}"):
            await js.connect("nats://bad")


async def closed_for_good(connection):
    return connection.is_closed


async def test_connection_that_breaks_at_once_is_not_retried_in_a_loop():
    """The server closes each new connection at once, because of the client's subscription."""
    policy = js.ReconnectPolicy(attempts=4, wait=0.01, max_wait=30)
    events = []

    def unwilling(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB")
        peer.close()

    with FakeServer(rest=unwilling) as server:
        connection = await js.connect(server.url, reconnect=policy, on_event=events.append)
        async with connection.subscribe("x"):
            await eventually(closed_for_good, connection)
        assert connection.stats.connects == 5

        async def is_reported():
            return isinstance(events[-1], js.Closed)

        await eventually(is_reported)
    assert "gave up after 4 rounds" in events[-1].cause


async def test_after_a_while_of_service_the_rounds_begin_again():
    served = js.ReconnectPolicy(attempts=2, wait=0.01, max_wait=0.01)

    def short(peer: FakePeer) -> None:
        peer.handshake()
        peer.reach(f"greeted {peer.number}")
        peer.wait_for(f"break {peer.number}")
        peer.close()

    since = {}

    def note(event):
        if isinstance(event, js.Connected):
            since[event.epoch] = monotonic()

    with FakeServer(*[short] * 5, welcome) as server:
        async with js.connect(server.url, reconnect=served, on_event=note) as connection:
            for number in range(1, 6):

                async def stands(epoch=number):
                    return epoch in since and monotonic() - since[epoch] > 0.01

                await eventually(stands)
                server.tell(f"break {number}")

            async def sixth():
                return connection.is_connected and connection.stats.connects == 6

            await eventually(sixth)


async def discovered(events):
    return [each for each in events if isinstance(each, js.ServersDiscovered)]


async def test_addresses_announced_before_tls_are_not_believed(tmp_path):
    certificates = make_certificates(tmp_path)
    tls = js.TlsOptions(ca_file=certificates.authority)
    info = b',"connect_urls":["evil.example:4222"]'
    events = []
    with meddled(certificates, b"", b"MSG news 1 4\r\ntrue\r\n", info) as url:
        async with js.connect(url, tls=tls, reconnect=QUICK, on_event=events.append) as connection:
            subscription = await connection.subscribe("news")
            assert (await subscription.next(timeout=60)).data == b"true"
    assert not await discovered(events)


async def test_addresses_announced_over_tls_are_believed(tmp_path):
    """Servers since 2.12 send INFO again after the login."""
    certificates = make_certificates(tmp_path)
    tls = js.TlsOptions(ca_file=certificates.authority)
    config = f"""tls {{
        cert_file: "{certificates.server}"
        key_file: "{certificates.server_key}"
    }}"""
    with NatsCluster(2, config=config) as cluster:
        events = []
        async with js.connect(cluster.servers[0].url, tls=tls, on_event=events.append):
            await eventually(discovered, events)


async def test_the_dot_behind_an_absolute_name_is_not_part_of_the_certificates_name(
    server_factory, tmp_path, monkeypatch
):
    certificates = make_certificates(tmp_path, "localhost")
    config = f"""tls {{
        cert_file: "{certificates.server}"
        key_file: "{certificates.server_key}"
    }}"""
    with server_factory(config, jetstream=False) as server:
        resolving(monkeypatch, **{"localhost.": [server.port]})
        url = server.url.replace("nats://127.0.0.1", "tls://localhost.")
        tls = js.TlsOptions(ca_file=certificates.authority)
        async with js.connect(url, tls=tls) as connection:
            assert connection.is_connected
        named = js.TlsOptions(ca_file=certificates.authority, server_name="localhost.")
        async with js.connect(server.url, tls=named) as connection:
            assert connection.is_connected
