"""Errors of the connection and of the server that it leads to."""

from __future__ import annotations

from twinstream.errors.base import TwinstreamError

__all__ = [
    "AuthenticationFailed",
    "ConnectionClosed",
    "ConnectionFailed",
    "ConnectionLost",
    "PermissionDenied",
    "ProtocolError",
    "RequestTimeout",
    "ServerError",
    "WrongProcessOrLoop",
]


class ConnectionFailed(TwinstreamError, OSError):
    """No server could be reached. The message lists the error of each attempt."""


class AuthenticationFailed(ConnectionFailed):
    """The server refused the credentials of the client."""


class ConnectionLost(TwinstreamError, OSError):
    """The connection was lost before the response arrived. The outcome of the call is unknown."""


class ConnectionClosed(TwinstreamError):
    """The connection is closed: the application called `close`, or every reconnect failed."""


class WrongProcessOrLoop(TwinstreamError):
    """The connection was created in another process or event loop.

    Create a connection in each process and event loop.
    """


class ProtocolError(TwinstreamError):
    """The client received bytes that violate the NATS protocol."""


class ServerError(TwinstreamError):
    """The server sent an error with `-ERR`."""


class PermissionDenied(ServerError):
    """The user may not publish or subscribe to a subject."""

    def __str__(self) -> str:
        return f"{super().__str__()}; `twinstream permissions` prints what a program needs"


class RequestTimeout(TwinstreamError, TimeoutError):
    """The deadline passed without a response."""
