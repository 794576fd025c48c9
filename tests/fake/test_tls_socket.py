"""TLS on a non-blocking socket, with a peer from the standard library."""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import contextmanager

import pytest

from js_sync.runtime.tls_socket import TlsSocket
from tests.certificates import make_certificates
from tests.fake.threads import beside, in_time
from twinstream.core.deadline import Deadline

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
PATIENCE = 30


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls"), "localhost")


def server_context(certificates, version=ssl.TLSVersion.TLSv1_3):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    context.minimum_version = context.maximum_version = version
    return context


def client_context(certificates):
    return ssl.create_default_context(cafile=certificates.authority)


@contextmanager
def pair(certificates, context=None, client=None, first=b"", kind=socket.socket):
    """Yield a TlsSocket and its peer, which may send something at once."""
    near, far = socket.socketpair()
    near = kind(fileno=near.detach())
    near.setblocking(False)
    far.settimeout(PATIENCE)
    context = context or server_context(certificates)
    sock = TlsSocket(near, client or client_context(certificates), "localhost")

    def greet():
        peer = context.wrap_socket(far, server_side=True)
        if first:
            peer.sendall(first)
        return peer

    with beside(greet) as came:
        sock.shake_hands(Deadline.after(PATIENCE))
    (peer,) = came
    try:
        yield sock, peer
    finally:
        sock.close()
        peer.close()


def received(sock, size):
    """Return `count` bytes, polling as a link does."""
    got = b""
    while len(got) < size:
        assert select.select([sock], [], [], PATIENCE)[0]
        try:
            got += sock.recv(1 << 16)
        except BlockingIOError:
            continue
    return got


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_sent_arrives_both_ways(certificates, version):
    with pair(certificates, server_context(certificates, version)) as (sock, peer):
        assert sock.send(b"one") == 3
        assert peer.recv(10) == b"one"
        assert sock.sendmsg([memoryview(b"two"), memoryview(b"three")]) == 3
        assert peer.recv(10) == b"two"
        peer.sendall(b"four")
        assert received(sock, 4) == b"four"


@pytest.mark.parametrize("version", VERSIONS)
def test_data_right_after_the_handshake_is_seen_by_a_poll(certificates, version):
    context = server_context(certificates, version)
    with pair(certificates, context, first=b"INFO {}\r\n") as (sock, _):
        assert received(sock, 9) == b"INFO {}\r\n"


def test_one_read_brings_all_the_records_that_are_here(certificates):
    with pair(certificates) as (sock, peer):
        for _ in range(10):
            peer.sendall(b"x" * 100)
        # Nothing is left behind, neither where a poll would see it nor where it would not.
        assert sock.recv(1 << 16) == b"x" * 1000
        with pytest.raises(BlockingIOError):
            sock.recv(1 << 16)


def test_it_does_not_wait_for_the_rest_of_a_record(certificates):
    with pair(certificates) as (sock, peer):
        peer.sendall(b"y" * 1000)
        # Less than the header of a record and its contents, each time.
        for size in (3, 4, 500):
            with pytest.raises(BlockingIOError):
                sock.recv(size)
        assert sock.recv(1 << 16) == b"y" * 1000


def test_what_the_peer_did_not_take_is_sent_once_it_does(certificates):
    whole = bytes(range(256)) * 20_000
    with pair(certificates) as (sock, peer):
        rest = sent_to(sock, memoryview(whole))
        assert 0 < len(rest) < len(whole)
        with beside(lambda: received_by(peer, len(whole) + 4)) as came:
            # More may be behind it than there was the first time.
            rest = memoryview(bytes(rest) + b"last")
            while rest:
                assert select.select([], [sock], [], PATIENCE)[1]
                rest = sent_to(sock, rest)
        assert came == [whole + b"last"]


def sent_to(sock, rest):
    """Send until the peer accepts no more; return the rest."""
    try:
        while rest:
            rest = rest[sock.send(rest) :]
    except BlockingIOError:
        pass
    return rest


def received_by(peer, size):
    got = bytearray()
    while len(got) < size:
        got += peer.recv(1 << 16)
    return bytes(got)


@pytest.mark.parametrize("polite", [True, False])
def test_an_end_is_no_bytes(certificates, polite):
    with pair(certificates) as (sock, peer):
        peer.sendall(b"last words")
        assert received(sock, 10) == b"last words"
        if polite:
            peer.setblocking(False)
            with pytest.raises(ssl.SSLWantReadError):
                peer.unwrap()
        else:
            peer.close()
        assert select.select([sock], [], [], PATIENCE)[0]
        assert sock.recv(1 << 16) == b""


def test_bytes_that_are_not_tls_are_an_error(certificates):
    with pair(certificates) as (sock, peer):
        raw = socket.socket(fileno=peer.detach())
        raw.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(ssl.SSLError):
            received(sock, 1)
        raw.close()


def test_pending_tls_data_is_sent_after_a_read(certificates):
    """A server may ask for a certificate long after the handshake."""
    context = server_context(certificates)
    context.load_verify_locations(certificates.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.post_handshake_auth = True
    client = client_context(certificates)
    client.load_cert_chain(certificates.client, certificates.client_key)
    client.post_handshake_auth = True
    with pair(certificates, context, client) as (sock, peer):
        peer.verify_client_post_handshake()
        peer.sendall(b"who?")
        assert received(sock, 4) == b"who?"
        # Nothing else has to be sent for that.
        assert select.select([peer], [], [], PATIENCE)[0]
        sock.send(b"me")
        assert peer.recv(10) == b"me"
        assert peer.getpeercert()


def test_untrusted_server_is_reported(certificates):
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        far.settimeout(PATIENCE)
        client = ssl.create_default_context(cafile=certificates.stranger)
        sock = TlsSocket(near, client, "localhost")

        def greet():
            server_context(certificates).wrap_socket(far, server_side=True).recv(1)

        with beside(greet) as came:
            with pytest.raises(ssl.SSLCertVerificationError):
                sock.shake_hands(Deadline.after(PATIENCE))
        assert isinstance(came[0], ssl.SSLError)
        assert "UNKNOWN_CA" in str(came[0]).upper().replace(" ", "_")


def test_a_handshake_ends_in_time_and_with_its_peer(certificates):
    for end, error, text in (
        (lambda far: None, TimeoutError, "no TLS handshake in time"),
        (lambda far: far.close(), ConnectionError, "within the TLS handshake"),
    ):
        near, far = socket.socketpair()
        near.setblocking(False)
        with near, far:
            sock = TlsSocket(near, client_context(certificates), "localhost")
            with beside(lambda far=far, end=end: far.recv(1 << 16) and end(far)):
                with pytest.raises(error, match=text):
                    sock.shake_hands(Deadline.after(0.2 if error is TimeoutError else PATIENCE))


def test_a_signal_within_a_call_may_close_it(certificates):
    """The signal handler runs in the thread that is within the call."""
    handlers = []

    class Interrupted(socket.socket):
        def send(self, *given):
            for handler in handlers:
                handler()
            return super().send(*given)

    with pair(certificates, kind=Interrupted) as (sock, _):
        handlers.append(sock.close)
        with beside(lambda: sock.send(b"x")) as came:
            assert in_time(lambda: came, PATIENCE)
        assert isinstance(came[0], OSError)
