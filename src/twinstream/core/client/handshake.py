"""Parse the server's INFO and -ERR, and build the members of CONNECT."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import frozen

from twinstream.core.client.auth import Credentials
from twinstream.core.client.server_pool import ServerAddress
from twinstream.core.wire.control_line import is_too_long
from twinstream.core.wire.header_text import go_unquoted
from twinstream.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    PermissionDenied,
    ProtocolError,
    ServerError,
    TwinstreamError,
)

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
_NUMBERS: Final = r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})"
# `re` compiles `_DENIED` and `_CONNECT` at their first use, because most programs use neither.
_DENIED: Final = (
    r"permissions violation for (publish|subscription) (?:to|with reply of)"
    r' "((?:[^"\\]|\\.)*)"(?: using queue "((?:[^"\\]|\\.)*)")?'
)
_CONNECT: Final = r"CONNECT\s*\{.*"
NO_CREDENTIALS: Final = "no credentials were given"
"""Part of the error message if a server rejects a client without credentials."""
# Shorter secrets are not masked, because they could be part of an ordinary word.
_SHORTEST_SECRET: Final = 4
_TOO_MANY: Final = "maximum subscriptions exceeded"


@frozen
class ServerInfo:
    """The members of INFO that this package uses; `raw` has all members."""

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
    cluster: str = ""
    """The name of the cluster, empty if the server is not part of a cluster."""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ServerInfo:
        """Parse an INFO object; raises `ProtocolError` if a member has the wrong type."""
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
                cluster=str(raw.get("cluster", "")),
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise ProtocolError(f"INFO has a member of the wrong type: {error}") from error

    @property
    def version_numbers(self) -> tuple[int, int, int]:
        """The version as numbers; (0, 0, 0) if the server sends no valid version."""
        found = re.match(_NUMBERS, self.version, re.ASCII)
        if not found:
            return 0, 0, 0
        major, minor, patch = found.groups()
        return int(major), int(minor), int(patch)


def connect_fields(name: str | None, credentials: Credentials, nonce: str) -> dict[str, Any]:
    """Return the members of CONNECT, with a signature of `nonce` if the credentials have a key."""
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
    """Return the credentials in a server URL; they are empty if it contains none.

    A user without a password is a token.
    """
    if address.user is not None and address.password is not None:
        return Credentials(user=address.user, password=address.password)
    return Credentials(token=address.user)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text of a -ERR without secrets, in case the server quotes CONNECT.

    The arguments of CONNECT are masked as a whole. Each of `secrets` that has at least four
    characters is masked anywhere in the text.
    """
    text = re.sub(_CONNECT, "CONNECT ***", text, flags=re.IGNORECASE | re.DOTALL)
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            # The server may quote a secret as plain text or as a JSON string.
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
    return text


def server_error(text: str, secrets: Iterable[str] = ()) -> ServerError | AuthenticationFailed:
    """Return the error for the text of a -ERR, with `secrets` masked in its message.

    It is a `PermissionDenied`, an `AuthenticationFailed`, or a `ServerError` for any other text.
    """
    lower = text.lower()
    text = without_secrets(text, secrets)
    if lower.startswith("permissions violation"):
        return PermissionDenied(text)
    if "authorization" in lower or "authentication" in lower:
        return AuthenticationFailed(text)
    if is_too_long(lower):
        text = f"{text}: a protocol line was longer than the server's max_control_line"
    return ServerError(text)


def trouble_text(error: Exception) -> str:
    """Return the text of an error of an attempt to connect.

    For certificate errors, the text names the TLS options that may solve the problem; for a refused
    connection, it asks for the server.
    """
    text = str(error) or type(error).__name__
    if not isinstance(error, OSError | TwinstreamError):
        text = f"{type(error).__name__}: {text}"
    if isinstance(error, ConnectionRefusedError):
        return f"{text} (is a server running there? `nats-server -js` starts one)"
    # A certificate error has this attribute. Its class is not imported, because `ssl` takes long to
    # import and few applications need it.
    if hasattr(error, "verify_code"):
        return f"{text} (see TlsOptions: ca_file sets the trusted authority, server_name the name)"
    if "CERTIFICATE_REQUIRED" in text:
        return f"{text} (see TlsOptions: cert_file and key_file set the client certificate)"
    return text


class Attempts:
    """The errors of one round of attempts to connect."""

    def __init__(self) -> None:
        self._met: list[str] = []
        self._refused = True

    def add(self, address: ServerAddress, error: Exception) -> None:
        """Record a failed attempt."""
        self._met.append(f"{address}: {trouble_text(error)}")
        self._refused = self._refused and isinstance(error, AuthenticationFailed)

    def error(self) -> ConnectionFailed:
        """Return the error of the round.

        It is an `AuthenticationFailed` if all servers rejected the credentials, else a plain
        `ConnectionFailed`.
        """
        kind = AuthenticationFailed if self._met and self._refused else ConnectionFailed
        return kind("no server accepted the connection: " + "; ".join(self._met))


@frozen
class Denied:
    """An operation that the server denied without closing the connection."""

    publishing: bool
    """Whether a publish was denied. False means that a subscription was denied."""
    subject: bytes
    """The denied subject. Empty if the server reports that there are too many subscriptions."""
    queue: bytes = b""


def read_denied(text: str) -> Denied | None:
    """Return the operation that the -ERR with this text denies; None for another kind of -ERR."""
    if text.lower().startswith(_TOO_MANY):
        return Denied(False, b"")
    found = re.search(_DENIED, text, re.IGNORECASE)
    if not found:
        return None
    kind, subject, queue = found.groups(default="")
    return Denied(kind.lower() == "publish", go_unquoted(subject), go_unquoted(queue))
