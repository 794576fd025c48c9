"""Certificates for tests: an authority, a server at 127.0.0.1 and a client."""

from __future__ import annotations

from pathlib import Path

import trustme
from attrs import frozen


@frozen
class Certificates:
    """Paths of PEM files."""

    authority: str
    server: str
    server_key: str
    client: str
    client_key: str
    stranger: str
    """An authority that signed nothing here."""


def make_certificates(folder: Path, *names: str) -> Certificates:
    """Write certificates that are valid for this host only, with some of its names."""
    authority, stranger = trustme.CA(), trustme.CA()
    server = authority.issue_cert(*(names or ("127.0.0.1", "localhost")))
    client = authority.issue_cert("client@example.org")
    made = Certificates(*(str(folder / f"{name}.pem") for name in Certificates.__annotations__))
    authority.cert_pem.write_to_path(made.authority)
    stranger.cert_pem.write_to_path(made.stranger)
    server.cert_chain_pems[0].write_to_path(made.server)
    server.private_key_pem.write_to_path(made.server_key)
    client.cert_chain_pems[0].write_to_path(made.client)
    client.private_key_pem.write_to_path(made.client_key)
    return made
