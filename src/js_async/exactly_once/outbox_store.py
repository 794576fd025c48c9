"""What a relay needs of the place where events wait. `SqliteOutbox` is one; write your own.

The calls may block; a relay makes one at a time, each beside its own work. What a call changed is
durable when it returns. `OSError`, and the errors of SQLite that pass, are told and the call is
made again; any other error ends the relay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from twinstream.core.exactly_once.outbox import OutboxEvent

__all__ = ["OutboxStore"]


class OutboxStore(Protocol):
    """Events in the order in which they were added, and how far the stream was looked through."""

    def claim(self) -> bool:
        """Make this relay the only one, until `release` or the end of the process.

        Returns False when another one is.
        """
        ...

    def release(self) -> None:
        """Let another relay work."""
        ...

    def pending(self, limit: int, after: int = 0) -> list[OutboxEvent]:
        """Return the first events that wait, up to `limit`, by number, those above `after`.

        Refused ones do not wait; nor do events of a key of which one is refused.
        """
        ...

    def pending_ids(self) -> Mapping[str, int]:
        """Return the numbers of all events that wait, refused ones included, by identity.

        A refused one may wait again later, and an attempt before may have stored it.
        """
        ...

    def done(self, numbers: Iterable[int]) -> None:
        """Remove events: they are stored."""
        ...

    def refuse(self, number: int, reason: str) -> None:
        """Set an event aside: it cannot be stored."""
        ...

    def floor(self, stream: str) -> int | None:
        """Return what `set_floor` kept for a stream; None when it was never called for it."""
        ...

    def set_floor(self, stream: str, seq: int) -> None:
        """Keep the sequence up to which a stream holds none of the events that wait."""
        ...
