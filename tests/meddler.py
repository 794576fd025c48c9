"""A server with TLS behind an attacker who adds a message before TLS begins."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.certificates import Certificates

__all__ = ["meddled"]

_INFO = b'INFO {"version":"2.15.1","headers":true,"max_payload":1000,"tls_required":true%b}\r\n'


@contextmanager
def meddled(
    certificates: Certificates, added: bytes, honest: bytes, info: bytes = b""
) -> Iterator[str]:
    """Run the server and yield its address; `info` is added to the members of INFO.

    The first connection is closed after a SUB. On the next connection, the server sends `honest`
    over TLS after a SUB, and the attacker sends `added` before TLS.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)

    def serve(plain: socket.socket, added: bytes, honest: bytes) -> None:
        plain.sendall(_INFO % info + added)
        with context.wrap_socket(plain, server_side=True) as secured:
            told = False
            while data := secured.recv(4096):
                secured.sendall(b"PONG\r\n" * data.count(b"PING"))
                if b"SUB" in data and not told:
                    if not honest:
                        return
                    secured.sendall(honest)
                    told = True

    def run() -> None:
        for words in ((b"", b""), (added, honest)):
            plain, _ = listener.accept()
            serve(plain, *words)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"tls://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(20)
