"""What happens to a connection, as typed events."""

from __future__ import annotations

from attrs import frozen

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
    """A link was made; `epoch` counts them, 1 is the first."""

    server: str
    epoch: int


@frozen
class Disconnected:
    """The link broke; mending begins at once, unless reconnecting is off."""

    server: str
    cause: str


@frozen
class Closed:
    """The connection is closed for good; `cause` is empty when the program closed it."""

    cause: str = ""


@frozen
class LameDuck:
    """The server is about to stop and asks its clients to go elsewhere."""

    server: str


@frozen
class ServersDiscovered:
    """The server named others of its cluster."""

    servers: tuple[str, ...]


@frozen
class ServerReported:
    """The server sent -ERR: a permission violation, say."""

    text: str


@frozen
class MessagesDropped:
    """A core subscription is full: its owner is too slow. `dropped` counts all of it so far.

    Also sent when a message could not be taken in, a fault of this package. Then `dropped` counts
    those of the connection, and the error is logged.
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
