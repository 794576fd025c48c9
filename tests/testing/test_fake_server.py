"""The scripted server: what it sends, what it sees, and how it complains."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.soak import LONGEST
from twinstream.testing import FakePeer, FakeServer, ScriptError


class Client:
    """A bare socket with what the tests need of it."""

    def __init__(self, server: FakeServer) -> None:
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, text: str) -> None:
        self.sock.sendall(text.encode())

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            assert piece, f"the server closed after {data!r}"
            data += piece
        return data

    def line(self) -> bytes:
        data = b""
        while not data.endswith(b"\r\n"):
            data += self.read(1)
        return data

    def until_end(self) -> bytes:
        data = b""
        while piece := self.sock.recv(65536):
            data += piece
        return data


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)


def test_greeting_and_messages() -> None:
    def script(peer: FakePeer) -> None:
        connect = peer.handshake(max_payload=99)
        assert connect == {"verbose": False}
        peer.expect("^SUB a")
        peer.message("a.b", b"hi")
        peer.message("a.b", b"hi", subject="x", reply="r", headers={"A": 1, "B": "c"})
        peer.status("a.b", 408, "Request Timeout", Nats_Pending_Messages=3)
        request = peer.expect(r"^PUB \S+ \S+ 2")
        assert (request.subject, request.reply, request.payload) == ("q", "a.r", b"{}")
        assert request.json == {}
        peer.answer(request, {"ok": True})
        peer.error("Slow down")
        peer.close()

    with FakeServer(script) as server, Client(server) as client:
        assert b'"max_payload": 99' in client.line()
        client.send('CONNECT {"verbose":false}\r\nPING\r\n')
        assert client.line() == b"PONG\r\n"
        client.send("SUB a.* 7\r\nPUB q a.r 2\r\n{}\r\n")
        assert client.until_end() == (
            b"MSG a.b 7 2\r\nhi\r\n"
            b"HMSG x 7 r 24 26\r\nNATS/1.0\r\nA: 1\r\nB: c\r\n\r\nhi\r\n"
            b"HMSG a.b 7 58 58\r\n"
            b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\n\r\n\r\n"
            b'MSG a.r 7 12\r\n{"ok": true}\r\n'
            b"-ERR 'Slow down'\r\n"
        )
    assert server.connections == 1
    assert [each.verb for each in server.operations()] == ["CONNECT", "PING", "SUB", "PUB"]
    assert len(server.operations("^PUB")) == 1


def test_deliveries_carry_the_names_of_the_pull() -> None:
    def script(peer: FakePeer) -> None:
        pull = peer.expect_pull()
        assert pull.json == {"batch": 2}
        reply = peer.deliver(pull, 7, b"x", subject="orders.new", delivered=2, pending=5)
        assert reply == "$JS.ACK.S.c.2.7.7.1700000000000000000.5"

    with FakeServer(script) as server, Client(server) as client:
        client.send("SUB in.* 1\r\nPUB $JS.API.CONSUMER.MSG.NEXT.S.c in.1 11\r\n")
        client.send('{"batch":2}\r\n')
        head = b"MSG orders.new 1 $JS.ACK.S.c.2.7.7.1700000000000000000.5 1\r\n"
        assert client.read(len(head)) == head


@pytest.mark.parametrize("every", [1, 2, 7])
def test_bytes_can_be_split(every: int) -> None:
    sent = b"MSG a 1 5\r\nhello\r\n"

    def script(peer: FakePeer) -> None:
        peer.split(every)
        peer.send(sent)
        peer.split(None)
        peer.send(b"+OK\r\n")
        peer.send(b"")
        peer.close()

    with FakeServer(script) as server, Client(server) as client:
        assert client.until_end() == sent + b"+OK\r\n"


def test_operations_are_read_in_any_pieces() -> None:
    def script(peer: FakePeer) -> None:
        found = peer.expect("^HPUB")
        assert (found.headers, found.payload) == (b"NATS/1.0\r\n\r\n", b"a\r\nb")
        assert found.data == b"HPUB s r 12 16\r\nNATS/1.0\r\n\r\na\r\nb\r\n"
        assert found.reply == "r"
        assert peer.expect("^UNSUB").sid == "7"

    with FakeServer(script) as server, Client(server) as client:
        for letter in "HPUB s r 12 16\r\nNATS/1.0\r\n\r\na\r\nb\r\nUNSUB 7\r\n":
            client.send(letter)


def test_the_test_and_the_script_give_each_other_signs() -> None:
    def script(peer: FakePeer) -> None:
        peer.reach("here")
        peer.wait_for("go")
        peer.send(b"+OK\r\n")

    with FakeServer(script) as server, Client(server) as client:
        eventually(lambda: server.reached("here"))
        assert not server.reached("there")
        server.tell("go")
        assert client.line() == b"+OK\r\n"


def test_pings_are_answered_by_default() -> None:
    def script(peer: FakePeer) -> None:
        peer.expect("^SUB")
        peer.stop_answering()
        peer.reach("mute")
        peer.expect("^PING")
        peer.go_on()
        peer.reach("heard")
        peer.until_left()

    with FakeServer(script) as server, Client(server) as client:
        client.send("PING\r\n")
        assert client.line() == b"PONG\r\n"
        client.send("SUB a 1\r\n")
        eventually(lambda: server.reached("mute"))
        client.send("PING\r\n")
        eventually(lambda: server.reached("heard"))
        client.send("PING\r\n")
        assert client.line() == b"PONG\r\n"


def test_a_fence_waits_for_the_client() -> None:
    def script(peer: FakePeer) -> None:
        peer.fence()
        peer.send(b"+OK\r\n")

    with FakeServer(script) as server, Client(server) as client:
        assert client.line() == b"PING\r\n"
        client.send("PONG\r\n")
        assert client.line() == b"+OK\r\n"


def test_operations_can_be_followed_until_the_client_leaves() -> None:
    seen: list[str] = []

    def script(peer: FakePeer) -> None:
        peer.expect("^SUB")
        seen.extend(operation.line for operation in peer.follow())

    with FakeServer(script) as server, Client(server) as client:
        client.send("SUB a 1\r\nPUB b 0\r\n\r\n")
        client.send("UNSUB 1\r\n")
    assert seen == ["PUB b 0", "UNSUB 1"]


def test_writes_block_while_the_peer_does_not_read() -> None:
    def script(peer: FakePeer) -> None:
        peer.expect("^SUB")
        peer.stop_reading()
        peer.reach("deaf")
        peer.wait_for("go")
        peer.go_on()
        peer.expect("^PUB big")

    with FakeServer(script) as server, Client(server) as client:
        client.send("SUB a 1\r\n")
        eventually(lambda: server.reached("deaf"))
        size = 32 << 20
        data = memoryview(b"PUB big %d\r\n" % size + bytes(size) + b"\r\n")
        client.sock.settimeout(0.05)
        stuck = False
        while data and not stuck:
            try:
                data = data[client.sock.send(data) :]
            except TimeoutError:
                stuck = True
        assert stuck
        server.tell("go")
        client.sock.settimeout(60)
        client.sock.sendall(data)


def test_a_reset_is_a_reset() -> None:
    def script(peer: FakePeer) -> None:
        peer.expect("^SUB")
        peer.reset()

    with FakeServer(script) as server, Client(server) as client:
        client.send("SUB a 1\r\n")
        with pytest.raises(ConnectionResetError):
            client.until_end()


def test_each_connection_has_its_script() -> None:
    def say(word: bytes) -> Callable[[FakePeer], None]:
        return lambda peer: peer.send(word + b"\r\n")

    with FakeServer(say(b"one"), say(b"two"), rest=say(b"more")) as server:
        for word in (b"one", b"two", b"more", b"more"):
            with Client(server) as client:
                assert client.line() == word + b"\r\n"
        assert server.connections == 4


# ---- complaints


def complaint(script: Callable[[FakePeer], object], text: str, **options: float) -> str:
    def talk() -> None:
        with FakeServer(script, **options) as server, Client(server) as client:
            client.send(text)
            client.sock.shutdown(socket.SHUT_WR)
            client.until_end()

    with pytest.raises(ScriptError) as caught:
        talk()
    return str(caught.value)


def test_missing_operation_is_reported_with_the_received_ones() -> None:
    def script(peer: FakePeer) -> None:
        peer.expect("^SUB")
        peer.expect("^UNSUB 1")

    reason = complaint(script, "SUB a 1\r\nPUB x 2\r\nhi\r\nUNSUB 2\r\nPUB half 99\r\nx")
    assert "connection 1, step 2: expected /^UNSUB 1/" in reason
    assert "the client closed the connection" in reason
    assert "PUB x 2 b'hi'; UNSUB 2" in reason
    assert "SUB a" not in reason.replace("UNSUB", "")
    assert "incomplete: b'PUB half 99" in reason


def test_step_that_times_out_reports_it() -> None:
    def script(peer: FakePeer) -> None:
        peer.expect("^SUB", timeout=0.01)

    with pytest.raises(ScriptError, match=r"step 1: expected /.SUB/\n  received since.*nothing"):
        with FakeServer(script) as server, Client(server) as client:
            client.until_end()


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda peer: peer.message("a", b""), "no subscription to 'a'"),
        (lambda peer: peer.wait_for("go", timeout=0.01), "the test did not call tell('go')"),
        (lambda peer: peer.until_left(timeout=0.01), "expected the client to disconnect"),
        (lambda peer: {}["key"], "the script raised KeyError('key')"),
        (lambda peer: peer.expect("^CONNECT").json["x"], "the script raised"),
    ],
)
def test_wrong_step_is_reported(step: Callable[[FakePeer], object], reason: str) -> None:
    def talk() -> None:
        with FakeServer(step) as server, Client(server) as client:
            client.send("CONNECT x\r\n")
            client.until_end()

    with pytest.raises(ScriptError) as caught:
        talk()
    assert reason in str(caught.value)


def test_a_client_that_is_no_client_is_named() -> None:
    assert "violated the protocol" in complaint(lambda peer: peer.expect("x"), "PUB a b\r\n")


def test_sending_without_a_subscriber_is_reported() -> None:
    def script(peer: FakePeer) -> None:
        peer.close()
        peer.send(b"PING\r\n")

    assert "cannot send b'PING" in complaint(script, "")


def test_an_unfinished_script_is_named() -> None:
    def talk() -> None:
        with FakeServer(lambda peer: peer.expect("^SUB"), patience=0.05) as server:
            stack.enter_context(Client(server))
            eventually(lambda: server.connections == 1)

    with ExitStack() as stack:
        with pytest.raises(ScriptError, match="step 1: expected"):
            talk()


def test_connections_without_a_script_and_scripts_without_a_connection() -> None:
    def talk() -> None:
        with FakeServer() as server, Client(server) as client:
            assert client.until_end() == b""
            assert len(server.failures) == 1

    with pytest.raises(ScriptError, match="connection 1 was opened"):
        talk()
    with pytest.raises(ScriptError, match="connection 1 was not opened"):
        with FakeServer(FakePeer.close, patience=0.05):
            pass


def test_error_of_the_test_takes_precedence() -> None:
    def talk() -> None:
        with FakeServer(lambda peer: peer.expect("^SUB")) as server, Client(server):
            eventually(lambda: server.connections == 1)
            raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        talk()
    assert "expected /^SUB/" in caught.value.__notes__[0]


def test_an_unstarted_server_has_no_port() -> None:
    server = FakeServer()
    with pytest.raises(RuntimeError, match="not been started"):
        _ = server.port
    server.stop()
    assert server.start() is server
    assert server.start().url == f"nats://127.0.0.1:{server.port}"
    server.stop()
    server.stop()
