"""TLS options as picklable values; the SSL context is built when the connection is made."""

from __future__ import annotations

from twinstream.errors import BadArgument
from twinstream.models.records import field, frozen

__all__ = ["TlsOptions"]


@frozen(kw_only=True)
class TlsOptions:
    """TLS settings of a connection. Host names are verified unless `verify` is False.

    Raises `BadArgument` for a `key_file` without `cert_file`.
    """

    ca_file: str | None = None
    """PEM file of the trusted authorities; None uses those of the system."""
    cert_file: str | None = None
    """PEM file of the client's certificate, if the server requires one."""
    key_file: str | None = None
    """PEM file of the client's key; None if it is in `cert_file`."""
    key_password: str | None = field(default=None, repr=False)
    handshake_first: bool = False
    """Start with TLS, before the server's INFO (server 2.10.4, `handshake_first`)."""
    server_name: str | None = None
    """The name that the server's certificate must have; None means the host connected to.

    For a server that was announced by its IP address only, None means the given host."""
    verify: bool = True
    """False trusts any server; for tests only."""

    def __attrs_post_init__(self) -> None:
        if self.key_file is not None and self.cert_file is None:
            raise BadArgument("key_file needs cert_file")
