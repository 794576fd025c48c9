"""Typed events of a connection."""

from __future__ import annotations

from twinstream.models.records import frozen

__all__ = [
    "Closed",
    "Connected",
    "ConnectionEvent",
    "Disconnected",
    "LameDuck",
    "MessagesDropped",
    "ServerReported",
    "ServersDiscovered",
]


@frozen
class Connected:
    """A TCP connection was established; `epoch` counts them, starting with 1."""

    server: str
    epoch: int


@frozen
class Disconnected:
    """The TCP connection was lost. Reconnecting starts immediately, unless it is disabled."""

    server: str
    cause: str


@frozen
class Closed:
    """The connection is permanently closed; `cause` is empty if the application closed it."""

    cause: str = ""


@frozen
class LameDuck:
    """The server is about to shut down and asks its clients to use another one."""

    server: str


@frozen
class ServersDiscovered:
    """The server announced other servers of its cluster."""

    servers: tuple[str, ...]


@frozen
class ServerReported:
    """The server sent -ERR, for example because of a permission violation."""

    text: str


@frozen
class MessagesDropped:
    """A core subscription is full, because its consumer is too slow. `dropped` is the total so far.

    Also sent if a message could not be processed because of a bug in this package. Then `dropped`
    is the total of the connection, and the error is logged.
    """

    subject: str
    dropped: int


ConnectionEvent = (
    Connected
    | Disconnected
    | Closed
    | LameDuck
    | ServersDiscovered
    | ServerReported
    | MessagesDropped
)
