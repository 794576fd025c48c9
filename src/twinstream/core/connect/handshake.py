"""Greeting a server: what INFO says, and the CONNECT that answers it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import frozen

from twinstream.core.connect.auth import Credentials
from twinstream.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    PermissionDenied,
    ProtocolError,
    ServerError,
    TwinstreamError,
)
from twinstream.core.connect.server_pool import ServerAddress
from twinstream.core.wire.header_text import go_unquoted

__all__ = [
    "NO_CREDENTIALS",
    "Attempts",
    "Denied",
    "ServerInfo",
    "connect_fields",
    "read_denied",
    "server_error",
    "trouble_text",
    "url_credentials",
    "without_secrets",
]

CLIENT_VERSION: Final = "0.1.0"
_NUMBERS: Final = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", re.ASCII)
_DENIED: Final = re.compile(
    r"permissions violation for (publish|subscription) (?:to|with reply of)"
    r' "((?:[^"\\]|\\.)*)"(?: using queue "((?:[^"\\]|\\.)*)")?',
    re.I,
)
NO_CREDENTIALS: Final = "no credentials were given"
"""Stands in the error if a server refuses a client that gave none."""
_CONNECT: Final = re.compile(r"CONNECT\s*\{.*", re.IGNORECASE | re.DOTALL)
# A shorter one could be any part of a word.
_SHORTEST_SECRET: Final = 4
_TOO_MANY: Final = "maximum subscriptions exceeded"


@frozen
class ServerInfo:
    """The parts of INFO that the SDK reads; `raw` is all of it."""

    raw: Mapping[str, Any]
    server_id: str = ""
    server_name: str = ""
    version: str = "0.0.0"
    max_payload: int = 1 << 20
    headers: bool = False
    jetstream: bool = False
    domain: str = ""
    auth_required: bool = False
    tls_required: bool = False
    tls_available: bool = False
    connect_urls: tuple[str, ...] = ()
    lame_duck: bool = False
    client_id: int = 0
    nonce: str = ""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ServerInfo:
        """Read an INFO object; raises `ProtocolError` when a member has the wrong type."""
        try:
            return cls(
                raw,
                server_id=str(raw.get("server_id", "")),
                server_name=str(raw.get("server_name", "")),
                version=str(raw.get("version", "0.0.0")),
                max_payload=int(raw.get("max_payload", 1 << 20)),
                headers=bool(raw.get("headers")),
                jetstream=bool(raw.get("jetstream")),
                domain=str(raw.get("domain", "")),
                auth_required=bool(raw.get("auth_required")),
                tls_required=bool(raw.get("tls_required")),
                tls_available=bool(raw.get("tls_available")),
                connect_urls=tuple(str(url) for url in raw.get("connect_urls") or ()),
                lame_duck=bool(raw.get("ldm")),
                client_id=int(raw.get("client_id", 0)),
                nonce=str(raw.get("nonce", "")),
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise ProtocolError(f"INFO has a member of the wrong type: {error}") from error

    @property
    def version_numbers(self) -> tuple[int, int, int]:
        """The version as numbers; (0, 0, 0) when the server does not say."""
        found = _NUMBERS.match(self.version)
        if not found:
            return 0, 0, 0
        major, minor, patch = found.groups()
        return int(major), int(minor), int(patch)


def connect_fields(name: str | None, credentials: Credentials, nonce: str) -> dict[str, Any]:
    """Return the members of CONNECT."""
    fields: dict[str, Any] = {
        "verbose": False,
        "pedantic": False,
        "lang": "python-twinstream",
        "version": CLIENT_VERSION,
        "protocol": 1,
        "echo": True,
        "headers": True,
        "no_responders": True,
    }
    if name:
        fields["name"] = name
    fields.update(credentials.fields(nonce))
    return fields


def url_credentials(address: ServerAddress) -> Credentials:
    """Return the user info of a server URL; a user without a password is a token."""
    if address.user is not None and address.password is not None:
        return Credentials(user=address.user, password=address.password)
    return Credentials(token=address.user)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text of a -ERR without what CONNECT said, should the server quote that."""
    text = _CONNECT.sub("CONNECT ***", text)
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            # As it is, and as it stands in JSON.
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
    return text


def server_error(text: str, secrets: Iterable[str] = ()) -> ServerError | AuthenticationFailed:
    """Return the error for the text of a -ERR, which shows none of the secrets."""
    lower = text.lower()
    text = without_secrets(text, secrets)
    if lower.startswith("permissions violation"):
        return PermissionDenied(text)
    if "authorization" in lower or "authentication" in lower:
        return AuthenticationFailed(text)
    return ServerError(text)


def trouble_text(error: Exception) -> str:
    """Return what an attempt to connect met and, where TLS is in the way, what to set."""
    text = str(error) or type(error).__name__
    if not isinstance(error, OSError | TwinstreamError):
        text = f"{type(error).__name__}: {text}"
    # Known by this attribute: `ssl` takes long to import, and few programs need it.
    if hasattr(error, "verify_code"):
        return f"{text} (TlsOptions: ca_file is whom to trust, server_name the name to expect)"
    if "CERTIFICATE_REQUIRED" in text:
        return f"{text} (TlsOptions: cert_file and key_file are the client's own)"
    return text


class Attempts:
    """What each attempt of one round met."""

    def __init__(self) -> None:
        self._met: list[str] = []
        self._refused = True

    def add(self, address: ServerAddress, error: Exception) -> None:
        """Note an attempt that failed."""
        self._met.append(f"{address}: {trouble_text(error)}")
        self._refused = self._refused and isinstance(error, AuthenticationFailed)

    def error(self) -> ConnectionFailed:
        """Return the error of the round; `AuthenticationFailed` if all refused the credentials."""
        kind = AuthenticationFailed if self._met and self._refused else ConnectionFailed
        return kind("no server took the connection: " + "; ".join(self._met))


@frozen
class Denied:
    """What the server refused, where it leaves the link as it is."""

    publishing: bool
    """False: listening."""
    subject: bytes
    """Empty where it says no more than that there are too many subscriptions."""
    queue: bytes = b""


def read_denied(text: str) -> Denied | None:
    """Return what a -ERR refuses; None when it is about something else."""
    if text.lower().startswith(_TOO_MANY):
        return Denied(False, b"")
    found = _DENIED.search(text)
    if not found:
        return None
    kind, subject, queue = found.groups(default="")
    return Denied(kind.lower() == "publish", go_unquoted(subject), go_unquoted(queue))
