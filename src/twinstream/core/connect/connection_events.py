"""The events of a connection, one class for each kind."""

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
    """The event that a TCP connection was established.

    `epoch` is the number of this TCP connection, counted from 1. It is above 1 after a reconnect.
    """

    server: str
    epoch: int


@frozen
class Disconnected:
    """The event that the TCP connection was lost.

    The client reconnects immediately, unless reconnecting is disabled.
    """

    server: str
    cause: str


@frozen
class Closed:
    """The event that the connection is permanently closed.

    `cause` is empty if the application closed it.
    """

    cause: str = ""


@frozen
class LameDuck:
    """The event that the server is about to shut down. It asks clients to use another server."""

    server: str


@frozen
class ServersDiscovered:
    """The event that the server announced further servers of its cluster."""

    servers: tuple[str, ...]


@frozen
class ServerReported:
    """The event that the server sent -ERR, for example because of a permission violation."""

    text: str


@frozen
class MessagesDropped:
    """The event that a core subscription is full because the application reads it too slowly.

    `dropped` is the total number of dropped messages of the subscription. The event also reports a
    message that could not be processed because of a bug in this package. Then `dropped` is the
    total of the connection, and the error is logged.
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
