"""The events of a connection, one class for each kind."""

from __future__ import annotations

from twinstream.models.codec.records import frozen

__all__ = [
    "Closed",
    "Connected",
    "ConnectionEvent",
    "Disconnected",
    "Interrupted",
    "LameDuck",
    "MessagesDropped",
    "ServerReported",
    "ServersDiscovered",
]


class Interrupted(ConnectionError):
    """An interrupt left it unknown which bytes were transferred, so this client disconnects."""


@frozen
class Connected:
    """Emitted when a TCP connection was established.

    `epoch` is the number of this TCP connection, counted from 1. It is above 1 after a reconnect.
    """

    server: str
    epoch: int


@frozen
class Disconnected:
    """Emitted when the TCP connection was lost.

    The client reconnects immediately, unless reconnecting is disabled. `interrupted` is true if
    this client ended the connection, because a signal such as Ctrl-C interrupted the program while
    it read or wrote. Usually the program ends then.
    """

    server: str
    cause: str
    interrupted: bool = False


@frozen
class Closed:
    """Emitted when the connection is permanently closed.

    `cause` is empty if the application closed it.
    """

    cause: str = ""


@frozen
class LameDuck:
    """Emitted when the server asks its clients to leave before it shuts down (lame duck mode)."""

    server: str


@frozen
class ServersDiscovered:
    """Emitted when the server announced further servers of its cluster."""

    servers: tuple[str, ...]


@frozen
class ServerReported:
    """Emitted when the server sent -ERR, for example because of a permission violation."""

    text: str


@frozen
class MessagesDropped:
    """Emitted when a core subscription is full because the application reads it too slowly.

    `dropped` is the total number of dropped messages of the subscription. The event is also emitted
    when a bug in this package prevents the processing of a message. In this case `dropped` is the
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
