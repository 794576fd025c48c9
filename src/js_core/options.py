"""The options of a connection: checked when made, picklable, secrets never shown."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from js_core.auth import Credentials
from js_core.deadline import seconds
from js_core.errors import BadArgument
from js_core.servers import ReconnectPolicy, ServerAddress, parse_servers
from js_core.subjects import check_subject
from js_core.tls import TlsOptions
from js_core.tokens import INBOX

__all__ = ["ConnectOptions"]


def _inbox(value: str) -> str:
    check_subject(value)
    return value


@frozen(kw_only=True)
class ConnectOptions:
    """What `connect` was asked for; each member is explained there."""

    servers: tuple[ServerAddress, ...] = field(converter=parse_servers)
    name: str | None = None
    credentials: Credentials | Callable[[], Credentials] = field(factory=Credentials, repr=False)
    credentials_file: str | None = None
    tls: TlsOptions | None = None
    connect_timeout: float = field(default=5.0, converter=seconds)
    request_timeout: float = field(default=5.0, converter=seconds)
    ping_interval: float = field(default=30.0, converter=seconds)
    reconnect: ReconnectPolicy | None = field(factory=ReconnectPolicy)
    shuffle: bool = True
    inbox_prefix: str = field(default=INBOX, converter=_inbox)

    def __attrs_post_init__(self) -> None:
        given = callable(self.credentials) or not self.credentials.is_empty
        if given and self.credentials_file is not None:
            raise BadArgument("give credentials or a credentials_file, not both")
        if self.ping_interval == 0 or self.connect_timeout == 0:
            raise BadArgument("ping_interval and connect_timeout must be above 0 seconds")
