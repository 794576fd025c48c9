"""A connection's pool of idle inboxes, which pull requests reuse."""

from __future__ import annotations

from typing import Final

from js_async.client.channel import Box

__all__ = ["InboxPool"]


class InboxPool:
    """A pool of inboxes that no pull request uses. An inbox is a prefix and a mailbox.

    The pool belongs to the connection and not to a consumer handle. Otherwise a program that looks
    up a consumer for every message would leave an inbox behind each time.
    """

    def __init__(self) -> None:
        self._idle: Final[list[tuple[bytes, Box]]] = []
        # Idle inboxes whose subscription the server refused. `take_refused` returns them.
        self._refused: Final[list[Box]] = []

    def take(self) -> tuple[bytes, Box] | None:
        """Remove an inbox from the pool and return it, or return None if the pool is empty."""
        try:
            while (idle := self._idle.pop())[1].error is not None:
                self._refused.append(idle[1])
        except IndexError:
            # The pool was empty, or another thread took the last inbox.
            return None
        return idle

    def put(self, prefix: bytes, box: Box) -> None:
        """Add an inbox to the pool. Its pull requests must have ended."""
        self._idle.append((prefix, box))

    def take_refused(self) -> Box | None:
        """Remove and return a mailbox that the server refused, or None. The caller closes it."""
        try:
            return self._refused.pop()
        except IndexError:
            return None
