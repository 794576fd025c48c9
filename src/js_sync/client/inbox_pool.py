# Generated from src/js_async/client/inbox_pool.py by codegen/twin.py. Edit that file instead.
"""The inboxes for pulls that nobody uses now, of a whole connection."""

from __future__ import annotations

from typing import Final, TypeVar

from js_sync.client.transport import Box

__all__ = ["IdleInboxes"]

T = TypeVar("T")


class IdleInboxes:
    """Inboxes on which nothing can come any more: a prefix and a mailbox each.

    Of a connection, not of a consumer: a program that looks a consumer up for every message it
    takes would leave one behind each time.
    """

    def __init__(self) -> None:
        self._idle: Final[list[tuple[bytes, Box]]] = []
        # Those that the server refused while nobody used them; it may permit others.
        self._refused: Final[list[Box]] = []

    def take(self) -> tuple[bytes, Box] | None:
        """Return an inbox for one user alone, if there is one."""
        while (idle := _pop(self._idle)) is not None:
            if idle[1].error is None:
                return idle
            self._refused.append(idle[1])
        return None

    def put(self, prefix: bytes, box: Box) -> None:
        """Take an inbox back."""
        self._idle.append((prefix, box))

    def take_refused(self) -> Box | None:
        """Return an inbox that is of no use any more, to be closed."""
        return _pop(self._refused)


def _pop(given: list[T]) -> T | None:
    try:
        return given.pop()
    except IndexError:
        # There was none, or another thread had it.
        return None
