"""Two threads that use one connection at the same time, forced into the worst order.

In each scenario, a hook stops one thread between two of its statements until another thread has
done something that only a concurrent thread can do.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

import js_sync as js
import js_sync.runtime.sender
from js_sync.runtime.concurrency import Signal
from js_sync.runtime.socket_link import Link
from js_sync.runtime.sockets import connected
from js_sync.runtime.tls_socket import TlsSocket
from tests._sync.flow import eventually
from tests.fake.answers import silent, until_cut
from tests.fake.names import full, replacing
from tests.fake.threads import A_WHILE, beside, in_time
from tests.hooked import hooked, starts
from tests.inside import link_of, refuse, session_of
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import TwinstreamError
from twinstream.testing import FakePeer, FakeServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)


def broken(peer: FakePeer) -> None:
    peer.handshake()
    peer.wait_for("break")
    peer.close()


def whole(peer: FakePeer) -> None:
    peer.handshake()
    peer.reach("whole")
    peer.until_left(timeout=30)


@contextmanager
def reconnected(*scripts, meanwhile, **options):
    """Yield a connection that calls `meanwhile` in a reconnect, before the first SUB is written.

    The connection has one subscription, which is passed to `meanwhile`, too.
    """
    once, news = [], []
    with FakeServer(broken, *scripts) as server, ExitStack() as stack:
        tasks = stack.enter_context(starts())
        with js.connect(server.url, reconnect=QUICK, **options) as connection:
            news.append(connection.subscribe("news"))
            link = link_of(connection)
            write = link.write

            def hooked(data, *now):
                if data.startswith(b"SUB") and not connection.is_connected and not once:
                    once.append(data)
                    meanwhile(connection, *news)
                return write(data, *now)

            link.write = hooked
            server.tell("break")
            yield server, connection, *news, tasks["twinstream-keeper"]
    assert once


def test_subscription_created_during_a_connect_is_sent():
    def second(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB late ")
        peer.reach("late")
        peer.until_left(timeout=30)

    kept = []

    def meanwhile(connection, _):
        kept.append(connection.subscribe("late"))

    with reconnected(second, meanwhile=meanwhile) as (server, *_):
        eventually(lambda: server.reached("late"))


def test_subscription_ended_during_a_connect_ends_there_too():
    def second(peer: FakePeer) -> None:
        peer.handshake()
        sid = peer.expect("^SUB news ").sid
        peer.expect(f"^UNSUB {sid}$")
        peer.reach("ended")
        peer.until_left(timeout=30)

    def meanwhile(_, news):
        news.close()

    with reconnected(second, meanwhile=meanwhile) as (server, *_):
        eventually(lambda: server.reached("ended"))


def test_refusal_before_a_connection_counts_reaches_the_subscription():
    def meanwhile(connection, _):
        refuse(connection, 'Permissions Violation for Subscription to "news"')

    with reconnected(whole, meanwhile=meanwhile) as (server, _, news, _):
        eventually(lambda: server.reached("whole"))
        with pytest.raises(js.PermissionDenied):
            news.next(timeout=10)


def test_connection_that_breaks_before_it_counts_is_restored():
    def meanwhile(connection, _):
        link_of(connection).abort(js.ConnectionLost("at the worst moment"))

    with reconnected(silent, whole, meanwhile=meanwhile) as (server, connection, *_):
        eventually(lambda: server.reached("whole"))
        connection.flush(timeout=30)


def test_connection_closed_during_a_reconnect_stays_closed():
    with reconnected(silent, meanwhile=lambda connection, _: connection.close()) as (
        _,
        connection,
        _,
        keeper,
    ):
        eventually(lambda: connection.is_closed)
        assert keeper.join(Deadline.after(30))
        assert not connection.is_connected
        with pytest.raises(js.ConnectionClosed):
            connection.publish("news")


def test_first_pong_of_a_connection_answers_no_later_ping():
    """A flush that begins right after the reconnect waits for the PONG of its own PING."""
    flushed = []

    def second(peer: FakePeer) -> None:
        peer.stop_answering()
        peer.handshake()
        peer.expect("^PING")
        peer.reach("asked")
        peer.until_left(timeout=30)

    def flush():
        with pytest.raises(js.RequestTimeout, match="no PONG"):
            connection.flush(timeout=A_WHILE)
        flushed.append(True)

    def on_event(event):
        if isinstance(event, js.Connected) and event.epoch == 2:
            threading.Thread(target=flush, daemon=True).start()
            eventually(lambda: server.reached("asked"))

    with FakeServer(broken, second) as server:
        with js.connect(server.url, reconnect=QUICK, on_event=on_event) as connection:
            server.tell("break")
            eventually(lambda: flushed)


def test_flag_for_a_connection_is_not_cleared_while_others_wait():
    waited_on = []

    def meanwhile(change):
        # Between two looks at the link: it comes back just now.
        if threading.current_thread() is threading.main_thread() and not waited_on:
            waited_on.append(change)
            server.tell("greet")
            eventually(lambda: connection.is_connected)

    def second(peer: FakePeer) -> None:
        peer.wait_for("greet")
        whole(peer)

    with FakeServer(broken, second) as server:
        with js.connect(server.url, reconnect=QUICK) as connection:
            server.tell("break")
            eventually(lambda: not connection.is_connected)
            with hooked("session: before ready wait", meanwhile):
                session_of(connection).ready(Deadline.after(30))
            assert waited_on[0].is_set()


def test_what_was_written_for_the_last_link_is_not_sent_over_the_next():
    """A thread may check the connection, and write after it was lost."""

    def second(peer: FakePeer) -> None:
        peer.wait_for("go on")
        peer.handshake()
        assert peer.operations[0].verb == "CONNECT", peer.operations
        peer.reach("whole")
        peer.until_left(timeout=30)

    with FakeServer(broken, second) as server:
        with js.connect(server.url, reconnect=QUICK) as connection:
            open_ = Link.open

            def slowly(link, *args):
                link.write(b"PUB late 0\r\n\r\n")
                open_(link, *args)

            link_of(connection).open = slowly.__get__(link_of(connection))
            server.tell("break")
            server.tell("go on")
            eventually(lambda: server.reached("whole"))


def test_sender_stuck_on_the_last_connection_takes_nothing_of_the_next(monkeypatch):
    with FakeServer(broken, whole) as server:
        with js.connect(server.url, reconnect=QUICK, connect_timeout=60) as connection:
            link = link_of(connection)
            out = link._out
            send = js_sync.runtime.sender.send

            def stuck(sock, data, *rest):
                if b"stuck" not in b"".join(data):
                    return send(sock, data, *rest)
                server.tell("break")
                # Until the next one is waiting for its CONNECT to go out, if that can be.
                in_time(lambda: any(each.startswith(b"CONNECT") for each in out))
                return data

            monkeypatch.setattr(js_sync.runtime.sender, "send", stuck)
            out.append(b"PUB stuck 0\r\n\r\n")
            link._flush(block=True)
            # Without its CONNECT it would take as long as an attempt may.
            eventually(lambda: server.reached("whole"), patience=50)


def test_bytes_of_the_last_link_are_not_read_as_those_of_the_next():
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^SUB news")
        peer.send(b"MSG a")
        peer.until_left(timeout=30)

    with FakeServer(first, whole) as server:
        with js.connect(server.url, reconnect=QUICK) as connection:
            session, began = session_of(connection), threading.Event()

            def slowly(data):
                if data == b"MSG a":
                    began.set()
                    in_time(lambda: session.epoch == 2)

            with (
                hooked("link: received", slowly),
                beside(lambda: connection.subscribe("news").next(timeout=60)) as came,
            ):
                assert began.wait(30)
                link_of(connection).abort(js.ConnectionLost("broken"))
                eventually(lambda: server.reached("whole"))
                connection.close()
            assert isinstance(came[0], js.ConnectionClosed)


def test_end_of_a_connection_is_reported_before_the_next_begins():
    """The background thread also checks whether its PING was answered."""
    epochs = []

    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    def slowly(session):
        in_time(lambda: session.epoch == 2)
        epochs.append(session.epoch)

    with FakeServer(first, rest=whole) as server, hooked("session: before fail", slowly):
        with js.connect(server.url, reconnect=QUICK, ping_interval=0.02) as connection:
            # On a busy machine, the background thread may have ended the connection already, and
            # the next one, too.
            link_of(connection).abort(js.ConnectionLost("broken"))
            assert eventually(lambda: epochs)[0] == 1
            eventually(lambda: server.reached("whole"))


def test_a_wait_sleeps_at_once():
    pauses = []
    with FakeServer(whole) as server:
        with js.connect(server.url) as connection:
            subscription = connection.subscribe("news")
            with hooked("link: before poll", pauses.append):
                assert subscription.next(timeout=0.5) is None
            assert 0 < pauses[0] <= 0.5


def test_a_socket_that_another_thread_closes_is_not_waited_for():
    class Dropped(socket.socket):
        def sendmsg(self, *_):
            self.close()
            raise BlockingIOError

    rest = [memoryview(b"rest")]
    assert js_sync.runtime.sender.send(Dropped(), rest, block=True) == rest


@contextmanager
def linked(kind):
    """Yield a link over a socket of this kind, and the socket of the peer."""
    near, far = socket.socketpair()
    link = Link(lambda data: None, lambda error: None)
    far.setblocking(False)
    with kind(fileno=near.detach()) as sock, far:
        link._adopt(sock)
        yield link, far
        link.close()


def test_the_addresses_of_a_name_share_the_time_for_connecting(monkeypatch):
    """None of them answers. Together they take no longer than one address."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(full()) for _ in range(3)]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in addresses]
        replacing(monkeypatch, lambda *_: found)
        given = []

        def all_were_tried():
            """On a busy machine, the time may be over before that."""
            given.clear()
            with (
                hooked("link: before connect", given.append),
                pytest.raises(TimeoutError, match="no connection in time"),
            ):
                connected("several.example", 4222, Deadline.after(0.3))
            return len(given) == 3

        eventually(all_were_tried)
        assert sum(given) <= 0.3


def test_unresponsive_first_address_is_skipped(monkeypatch):
    with full() as silent, FakeServer(rest=whole) as server:
        good = ("127.0.0.1", server.port)
        # One that this machine has no sockets for is passed over, too.
        found = [(-1, socket.SOCK_STREAM, 6, "", good)]
        found += [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in (silent, good)]
        replacing(monkeypatch, lambda *_: found)

        def is_skipped():
            """On a busy machine, the time may be over before the next address answers."""
            with (
                suppress(TwinstreamError),
                js.connect("nats://several.example", connect_timeout=1) as connection,
            ):
                return connection.is_connected

        eventually(is_skipped)


def test_data_written_during_a_send_is_sent_after_it():
    class Meanwhile(socket.socket):
        def send(self, data, *_):
            # The lock is taken: it is left to whoever sends now.
            link.write(b"other", True)
            return super().send(data)

    with linked(Meanwhile) as (link, far):
        link.write(b"request ", True)
        assert far.recv(4096) == b"request other"


def test_partly_written_request_continues_with_its_rest():
    class Full(socket.socket):
        def send(self, data, *_):
            return super().send(data[:3])

    with linked(Full) as (link, far):
        link.write(b"request ", True)
        link.write(b"other ", True)
        assert far.recv(4096) == b"request other "


def test_request_to_a_slow_peer_is_not_lost():
    class Busy(socket.socket):
        def send(self, *_):
            raise BlockingIOError

    with linked(Busy) as (link, far):
        link.write(b"request ", True)
        assert far.recv(4096) == b"request "


def test_nothing_is_sent_in_the_clear_during_a_reconnect():
    class Shared(TlsSocket):
        def shutdown(self, how):
            # What another thread may do just before and after.
            with suppress(OSError):
                self.send(b"secret")
            super().shutdown(how)
            with suppress(OSError):
                self.send(b"secret")

    near, far = socket.socketpair()
    near.setblocking(False)
    secure = Shared(near, ssl.create_default_context(), "a")
    link = Link(lambda data: None, lambda error: None)
    link._cut(secure)
    far.setblocking(False)
    assert b"secret" not in far.recv(4096)
    far.close()
    link.close()


def test_response_read_by_another_thread_arrives_in_time():
    """At the deadline, another thread has read the response but has not passed it on yet."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.wait_for("answer")
        peer.answer(peer.expect("PUB question"), b"here")
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        session = session_of(connection)
        link = link_of(connection)
        read, looked = threading.Event(), threading.Event()

        def slowly(data):
            if b"here" in data:
                read.set()
                looked.wait(30)

        other = Signal()
        with (
            hooked("link: received", slowly),
            hooked("link: data unprocessed", lambda _: looked.set()),
            beside(lambda: session.wait(other, Deadline.after(60))),
        ):
            answer = session.replies.send(b"question", b"", b"", Deadline.after(60))
            link.flush()
            server.tell("answer")
            assert read.wait(30)
            assert session.wait(answer.signal, Deadline(monotonic()))
            assert answer.take("question")[3] == b"here\r\n"
            other.set()


def test_a_signal_handler_wakes_the_thread_that_it_interrupts():
    """The main thread reads for all threads, and its signal handler causes the awaited event."""
    signal = pytest.importorskip("signal")

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left(timeout=30)

    with FakeServer(script) as server, js.connect(server.url) as connection:
        subscription = connection.subscribe("news")
        before = signal.signal(signal.SIGALRM, lambda *_: subscription.close())
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(js.IterationEnded):
                subscription.next(timeout=15)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def test_a_loss_that_is_reported_while_the_keeper_looks_is_noticed():
    looked = []

    def cut(keeper):
        if reading.is_set() and not looked and not keeper.connection_lost.is_set():
            looked.append(True)
            server.tell("cut")
            eventually(keeper.connection_lost.is_set)

    reading = threading.Event()
    with FakeServer(until_cut, whole) as server, hooked("keeper: before clear", cut):
        with js.connect(server.url, ping_interval=1) as connection:
            listening = connection.subscribe("x")
            # This thread reads, so it notices the loss.
            with beside(lambda: listening.next(timeout=60)):
                reading.set()
                eventually(lambda: server.reached("whole"))
                listening.close()
    assert looked
