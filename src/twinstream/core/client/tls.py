"""TLS options as picklable values. The client creates the SSL context when it connects."""

from __future__ import annotations

from attrs import field, frozen

from twinstream.errors import BadArgument
from twinstream.models.codec.settings import Settings

__all__ = ["TlsOptions"]


@frozen(kw_only=True)
class TlsOptions(Settings):
    """The TLS settings of a connection. Host names are verified unless `verify` is false.

    Raises `BadArgument` for a `key_file` without `cert_file`.
    """

    ca_file: str | None = None
    """PEM file of the trusted authorities; None means the authorities of the system."""
    cert_file: str | None = None
    """PEM file of the client's certificate, which some servers require."""
    key_file: str | None = None
    """PEM file of the client's key; None if it is in `cert_file`."""
    key_password: str | None = field(default=None, repr=False)
    """The password of the client's key; None if the key is not encrypted."""
    handshake_first: bool = False
    """Whether TLS starts before the server sends INFO (server 2.10.4, `handshake_first`)."""
    server_name: str | None = None
    """The name that the server's certificate must contain; None means the host of the connection.

    If the server was announced by its IP address, None means the host that the caller gave."""
    verify: bool = True
    """Whether to verify the server's certificate. False trusts any server; use it only in tests."""

    def __attrs_post_init__(self) -> None:
        if self.key_file is not None and self.cert_file is None:
            raise BadArgument("key_file needs cert_file")
