"""The options of a connection. They are validated on creation and picklable."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, fields_dict, frozen

from twinstream.core.client.auth import Credentials
from twinstream.core.client.server_pool import ReconnectPolicy, ServerAddress, parse_servers
from twinstream.core.client.tls import TlsOptions
from twinstream.core.deadline import Seconds, seconds
from twinstream.core.wire.subjects import check_prefix
from twinstream.core.wire.tokens import INBOX
from twinstream.errors import BadArgument
from twinstream.models.codec.settings import Settings

__all__ = ["ConnectOptions"]


def _connect_timeout(value: Seconds) -> float:
    return seconds(value, "connect_timeout")


def _request_timeout(value: Seconds) -> float:
    return seconds(value, "request_timeout")


def _ping_interval(value: Seconds) -> float:
    return seconds(value, "ping_interval")


def _inbox_prefix(value: str) -> str:
    try:
        return check_prefix(value)
    except BadArgument as error:
        raise BadArgument(f"inbox_prefix: {error}") from error


@frozen(kw_only=True)
class ConnectOptions(Settings):
    """The options of a connection. `connect` documents each of them.

    The repr does not contain secrets. Raises `BadArgument` for invalid values and for contradictory
    options.
    """

    servers: tuple[ServerAddress, ...] = field(converter=parse_servers)
    """Addresses of the servers."""
    name: str | None = None
    """Name of the connection in the server's lists."""
    credentials: Credentials | Callable[[], Credentials] = field(factory=Credentials, repr=False)
    """Credentials, or a function that returns them at each connect attempt."""
    credentials_file: str | None = None
    """File with a JWT and a seed, in the format of the tool `nsc`."""
    tls: TlsOptions | None = None
    """TLS settings. If the server requires TLS, the client uses TLS even without them."""
    connect_timeout: float = field(default=5.0, converter=_connect_timeout)
    """Seconds for one attempt to connect to one server."""
    request_timeout: float = field(default=5.0, converter=_request_timeout)
    """Default timeout of requests in seconds."""
    ping_interval: float = field(default=30.0, converter=_ping_interval)
    """Seconds between PINGs."""
    reconnect: ReconnectPolicy | None = field(factory=ReconnectPolicy)
    """Reconnect policy. With None, the connection closes when it is lost."""
    shuffle: bool = True
    """Whether the servers are tried in random order."""
    inbox_prefix: str = field(default=INBOX, converter=_inbox_prefix)
    """Prefix of reply subjects."""

    def __attrs_post_init__(self) -> None:
        self._check_kinds()
        given = callable(self.credentials) or not self.credentials.is_empty
        if given and self.credentials_file is not None:
            raise BadArgument("pass credentials or a credentials_file, not both")
        if self.ping_interval == 0 or self.connect_timeout == 0:
            raise BadArgument("ping_interval and connect_timeout must be above 0 seconds")

    def changes(self, other: ConnectOptions) -> list[str]:
        """Return the names of the options that differ from those of `other`."""
        names = fields_dict(ConnectOptions)
        return [name for name in names if getattr(self, name) != getattr(other, name)]

    def _check_kinds(self) -> None:
        """Raise `BadArgument` if the value of an option has the wrong type."""
        # Without this check, a wrong type would cause an error only during the TLS handshake or
        # after the connection was lost.
        kinds = {"reconnect": ReconnectPolicy, "tls": TlsOptions, "name": str}
        for what, kind in kinds.items():
            value = getattr(self, what)
            if value is not None and not isinstance(value, kind):
                named = "text" if kind is str else f"a {kind.__name__}"
                raise BadArgument(f"{what} must be {named} or None, got {value!r}")
        if not isinstance(self.credentials, Credentials) and not callable(self.credentials):
            # The value is not shown, as it may be a secret.
            kind = type(self.credentials).__name__
            raise BadArgument(f"credentials must be a function that returns them, got {kind}")
        file = self.credentials_file
        if file is not None and not (isinstance(file, str) or hasattr(file, "__fspath__")):
            # `open` would take a number for the descriptor of an open file or socket.
            raise BadArgument(f"credentials_file must be a path or None, got {file!r}")
