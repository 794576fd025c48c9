"""The unused inboxes for pulls of a connection."""

from __future__ import annotations

from typing import Final

from js_async.client.channel import Box

__all__ = ["IdleInboxes"]


class IdleInboxes:
    """Inboxes on which no more messages can arrive: a prefix and a mailbox each.

    The inboxes belong to the connection, not to a consumer. Otherwise a program that looks up a
    consumer for every message would leave an inbox behind each time.
    """

    def __init__(self) -> None:
        self._idle: Final[list[tuple[bytes, Box]]] = []
        # Inboxes that the server refused while they were unused; it may permit others.
        self._refused: Final[list[Box]] = []

    def take(self) -> tuple[bytes, Box] | None:
        """Return an inbox for exclusive use, if there is one."""
        try:
            while (idle := self._idle.pop())[1].error is not None:
                self._refused.append(idle[1])
        except IndexError:
            # There is none, or another thread took the last one.
            return None
        return idle

    def put(self, prefix: bytes, box: Box) -> None:
        """Return an inbox to the pool."""
        self._idle.append((prefix, box))

    def take_refused(self) -> Box | None:
        """Return an inbox that is unusable and should be closed, if there is one."""
        try:
            return self._refused.pop()
        except IndexError:
            return None
