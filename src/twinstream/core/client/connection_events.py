"""The events of a connection, one class for each kind."""

from __future__ import annotations

from attrs import frozen

from twinstream.core.log.report import DEBUG, ERROR, INFO, WARNING, Report

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
class Connected(Report):
    """Emitted when a TCP connection was established.

    `epoch` is the number of this TCP connection, counted from 1. It is above 1 after a reconnect.
    `outage` is the number of seconds without a connection before a reconnect.
    """

    server: str
    """Address of the server."""
    epoch: int
    outage: float = 0.0

    log_area = "connection"
    log_level = INFO

    def __str__(self) -> str:
        if self.epoch == 1:
            return f"connected to {self.server}"
        return f"reconnected to {self.server} after {self.outage:.1f} s"


@frozen
class Disconnected(Report):
    """Emitted when the TCP connection was lost.

    The client reconnects immediately, unless reconnecting is disabled. `interrupted` is true if
    this client ended the connection, because a signal such as Ctrl-C interrupted the program while
    it read or wrote. Usually the program ends then.
    """

    server: str
    """Address of the server."""
    cause: str
    """Why the connection ended, in words."""
    interrupted: bool = False

    log_area = "connection"

    def _level(self) -> int:
        return INFO if self.interrupted else WARNING

    def __str__(self) -> str:
        return f"disconnected from {self.server}: {self.cause}"


@frozen
class Closed(Report):
    """Emitted when the connection is permanently closed.

    `cause` is empty if the application closed it.
    """

    cause: str = ""

    log_area = "connection"

    def _level(self) -> int:
        return ERROR if self.cause else INFO

    def __str__(self) -> str:
        return "the connection is closed" + (f": {self.cause}" if self.cause else "")


@frozen
class LameDuck(Report):
    """Emitted when the server asks its clients to leave before it shuts down (lame duck mode)."""

    server: str
    """Address of the server."""

    log_area = "connection"
    log_level = INFO

    def __str__(self) -> str:
        return f"{self.server} is about to stop (lame duck mode)"


@frozen
class ServersDiscovered(Report):
    """Emitted when the server announced further servers of its cluster."""

    servers: tuple[str, ...]
    """Addresses of the new servers."""

    log_area = "connection"
    log_level = DEBUG

    def __str__(self) -> str:
        return f"servers discovered: {self.servers}"


@frozen
class ServerReported(Report):
    """Emitted when the server sent -ERR, for example because of a permission violation."""

    text: str
    """What the server sent after `-ERR`."""

    log_area = "connection"
    log_level = WARNING
    log_limit = "record"

    def __str__(self) -> str:
        return f"the server reported: {self.text}"


@frozen
class MessagesDropped(Report):
    """Emitted when a core subscription is full because the application reads it too slowly.

    `dropped` is the total number of dropped messages of the subscription. The event is also emitted
    when a bug in this package prevents the processing of a message. In this case `dropped` is the
    total of the connection, and the error is logged.
    """

    subject: str
    """Subject of the subscription."""
    dropped: int

    log_area = "connection"
    log_level = WARNING

    def __str__(self) -> str:
        return f"slow consumer of {self.subject}: {self.dropped} messages dropped so far"


ConnectionEvent = (
    Connected
    | Disconnected
    | Closed
    | LameDuck
    | ServersDiscovered
    | ServerReported
    | MessagesDropped
)
