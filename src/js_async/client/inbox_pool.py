"""A connection's pool of idle inboxes, which pull requests reuse."""

from __future__ import annotations

from typing import Final, TypeVar

from js_async.client.channel import Box

__all__ = ["IdleInboxes"]

T = TypeVar("T")


class IdleInboxes:
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
        while (idle := _pop(self._idle)) is not None:
            if idle[1].error is None:
                return idle
            self._refused.append(idle[1])
        return None

    def put(self, prefix: bytes, box: Box) -> None:
        """Add an inbox to the pool. No more messages may arrive on it."""
        self._idle.append((prefix, box))

    def take_refused(self) -> Box | None:
        """Remove and return a mailbox that the server refused, or None. The caller closes it."""
        return _pop(self._refused)


def _pop(given: list[T]) -> T | None:
    try:
        return given.pop()
    except IndexError:
        # The list was empty, or another thread took its last item.
        return None
