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
    """No server could be reached. The message lists the error of each attempt.

    What to do: Compare the addresses with those of the servers, and look whether the servers run.
    """


class AuthenticationFailed(ConnectionFailed):
    """The server refused the credentials of the client.

    What to do: Correct the user, password, token, nkey or credentials file, or the server's
    configuration.
    """


class ConnectionLost(TwinstreamError, OSError):
    """The connection was lost before the response arrived. The outcome of the call is unknown.

    What to do: Repeat the call, unless it may not happen twice; then look at its effect first.
    """


class ConnectionClosed(TwinstreamError):
    """The connection is closed: the application called `close`, or every reconnect failed.

    What to do: Connect again. If reconnects failed, give `connect` a `ReconnectPolicy` with more
    attempts.
    """


class WrongProcessOrLoop(TwinstreamError):
    """The connection was created in another process or event loop.

    Create a connection in each process and event loop.

    What to do: Create a connection in each process and event loop.
    """


class ProtocolError(TwinstreamError):
    """The client received bytes that violate the NATS protocol.

    What to do: Look whether the address is that of a NATS server, and not of its other ports.
    """


class ServerError(TwinstreamError):
    """The server sent an error with `-ERR`.

    What to do: See the text, and the log of the server.
    """


class PermissionDenied(ServerError):
    """The user may not publish or subscribe to a subject.

    What to do: Add the subject to the permissions of the user; `twinstream permissions` prints
    those that a call needs.
    """

    def __str__(self) -> str:
        return f"{super().__str__()}; `twinstream permissions` prints what a program needs"


class RequestTimeout(TwinstreamError, TimeoutError):
    """The deadline passed without a response.

    What to do: Repeat the call, with a longer `timeout` if the server is slow.
    """
