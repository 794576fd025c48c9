"""What TLS to speak, as values that pickle; the context is built where the connection is made."""

from __future__ import annotations

from attrs import field, frozen

from twinstream.errors import BadArgument

__all__ = ["TlsOptions"]


@frozen(kw_only=True)
class TlsOptions:
    """How to secure a connection. Host names are checked unless `verify` is switched off."""

    ca_file: str | None = None
    """PEM file of the authorities to trust; None trusts the system's."""
    cert_file: str | None = None
    """PEM file of the client's certificate, where the server wants one."""
    key_file: str | None = None
    """PEM file of its key; None when it is in `cert_file`."""
    key_password: str | None = field(default=None, repr=False)
    handshake_first: bool = False
    """Start with TLS, before the server's INFO (server 2.10.4, `handshake_first`)."""
    server_name: str | None = None
    """The name that the server's certificate must have; None: the host connected to.

    If a server of the cluster is known by its IP address only, the host that told of it."""
    verify: bool = True
    """False trusts any server: for tests only."""

    def __attrs_post_init__(self) -> None:
        if self.key_file is not None and self.cert_file is None:
            raise BadArgument("key_file needs cert_file")
