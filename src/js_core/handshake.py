"""Greeting a server: what INFO says, and the CONNECT that answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from js_core.errors import AuthenticationFailed, PermissionDenied, ProtocolError, ServerError
from js_core.options import ConnectOptions
from js_core.servers import ServerAddress

__all__ = ["ServerInfo", "connect_fields", "server_error"]

CLIENT_VERSION: Final = "0.1.0"
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


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
    connect_urls: tuple[str, ...] = ()
    lame_duck: bool = False
    client_id: int = 0

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ServerInfo:
        """Read an INFO object; raises `ProtocolError` when a member has the wrong type."""
        try:
            return cls(
                raw,
                str(raw.get("server_id", "")),
                str(raw.get("server_name", "")),
                str(raw.get("version", "0.0.0")),
                int(raw.get("max_payload", 1 << 20)),
                bool(raw.get("headers")),
                bool(raw.get("jetstream")),
                str(raw.get("domain", "")),
                bool(raw.get("auth_required")),
                bool(raw.get("tls_required")),
                tuple(str(url) for url in raw.get("connect_urls") or ()),
                bool(raw.get("ldm")),
                int(raw.get("client_id", 0)),
            )
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"INFO has a member of the wrong type: {error}") from error

    @property
    def version_numbers(self) -> tuple[int, int, int]:
        """The version as numbers; (0, 0, 0) when the server does not say."""
        found = _NUMBERS.match(self.version)
        if not found:
            return 0, 0, 0
        major, minor, patch = found.groups()
        return int(major), int(minor), int(patch)


def connect_fields(options: ConnectOptions, address: ServerAddress) -> dict[str, Any]:
    """Return the members of CONNECT; the URL's user info serves where options give none."""
    fields: dict[str, Any] = {
        "verbose": False,
        "pedantic": False,
        "tls_required": address.tls,
        "lang": "python-twinstream",
        "version": CLIENT_VERSION,
        "protocol": 1,
        "echo": True,
        "headers": True,
        "no_responders": True,
    }
    if options.name:
        fields["name"] = options.name
    if options.token is not None:
        fields["auth_token"] = options.token
    elif options.user is not None:
        fields["user"] = options.user
        fields["pass"] = options.password or ""
    elif address.user is not None and address.password is not None:
        fields["user"] = address.user
        fields["pass"] = address.password
    elif address.user is not None:
        fields["auth_token"] = address.user
    return fields


def server_error(text: str) -> ServerError | AuthenticationFailed:
    """Return the error for the text of a -ERR."""
    lower = text.lower()
    if lower.startswith("permissions violation"):
        return PermissionDenied(text)
    if "authorization" in lower or "authentication" in lower:
        return AuthenticationFailed(text)
    return ServerError(text)
