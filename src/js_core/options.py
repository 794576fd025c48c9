"""The options of a connection: checked when made, picklable, secrets never shown."""

from __future__ import annotations

from attrs import field, frozen

from js_core.deadline import seconds
from js_core.errors import BadArgument
from js_core.servers import ReconnectPolicy, ServerAddress, parse_servers
from js_core.subjects import check_subject
from js_core.tokens import INBOX

__all__ = ["ConnectOptions"]


def _inbox(value: str) -> str:
    check_subject(value)
    return value


@frozen(kw_only=True)
class ConnectOptions:
    """What `connect` was asked for."""

    servers: tuple[ServerAddress, ...] = field(converter=parse_servers)
    name: str | None = None
    """Shown in the server's monitoring and in advisories."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    connect_timeout: float = field(default=5.0, converter=seconds)
    """Seconds for one attempt at one server, greeting included."""
    request_timeout: float = field(default=5.0, converter=seconds)
    """Seconds a request waits for its answer unless told otherwise."""
    ping_interval: float = field(default=30.0, converter=seconds)
    """Seconds between PINGs; two without an answer end the link."""
    reconnect: ReconnectPolicy | None = field(factory=ReconnectPolicy)
    """None: the connection closes when the link breaks."""
    shuffle: bool = True
    """Try the given servers in random order."""
    inbox_prefix: str = field(default=INBOX, converter=_inbox)

    def __attrs_post_init__(self) -> None:
        if self.password is not None and self.user is None:
            raise BadArgument("a password needs a user")
        if self.token is not None and self.user is not None:
            raise BadArgument("give a token or a user, not both")
        if self.ping_interval == 0 or self.connect_timeout == 0:
            raise BadArgument("ping_interval and connect_timeout must be above 0 seconds")
