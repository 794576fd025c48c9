"""Errors of calls: invalid arguments, and calls that are not possible at the moment."""

from __future__ import annotations

from twinstream.errors.base import TwinstreamError

__all__ = [
    "BadArgument",
    "BadPayload",
    "IterationEnded",
    "Unsupported",
    "WrongHandler",
]


class BadArgument(TwinstreamError, ValueError):
    """An argument is invalid; nothing was sent to the server.

    What to do: Correct the argument that the text names.
    """


class IterationEnded(TwinstreamError):
    """`next` was called after the end of an iteration.

    Check `is_ended` of the iteration before the call.

    What to do: Check `is_ended` of the iteration before the call.
    """


class BadPayload(TwinstreamError, ValueError):
    """A payload cannot be decoded as the caller requested: as UTF-8 text or as JSON.

    What to do: Read the bytes from `data`, or correct the program that published them.
    """


class WrongHandler(BadArgument):
    """A callback is a coroutine function but must be a plain function, or the reverse.

    What to do: Define the handler with `async def` for `js_async`, and with `def` for `js_sync`.
    """


class Unsupported(TwinstreamError):
    """The connected server is too old for the requested feature.

    What to do: Use a newer server, or do without the feature that the text names.
    """
