"""The interface of a relay to its outbox. `SqliteOutbox` implements it; you can write your own.

The calls may block; a relay makes one at a time, without blocking its other work. Changes must be
durable when a call returns. `OSError` and temporary SQLite errors are reported, and the call is
repeated; any other error ends the relay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from twinstream.core.exactly_once.outbox import OutboxEvent

__all__ = ["OutboxStore"]


class OutboxStore(Protocol):
    """Storage of an outbox: its events in insertion order, and a sequence for each stream.

    Up to that sequence the stream contains no pending event.
    """

    def claim(self) -> bool:
        """Claim the outbox for this relay, until `release` or the end of the process.

        Returns False if another relay has claimed it.
        """
        ...

    def release(self) -> None:
        """Allow another relay to work."""
        ...

    def pending(self, limit: int, after: int = 0) -> list[OutboxEvent]:
        """Return up to `limit` pending events with numbers above `after`, in order.

        Refused events are not pending, and neither are events of a key with a refused one.
        """
        ...

    def pending_ids(self) -> Mapping[str, int]:
        """Return the numbers of all pending events, including refused ones, by message id.

        A refused event may become pending again, and an earlier attempt may have stored it.
        """
        ...

    def done(self, numbers: Iterable[int]) -> None:
        """Remove events that are stored."""
        ...

    def refuse(self, number: int, reason: str) -> None:
        """Set an event aside that cannot be stored."""
        ...

    def floor(self, stream: str) -> int | None:
        """Return the value of `set_floor` for a stream, or None if it was never set."""
        ...

    def set_floor(self, stream: str, seq: int) -> None:
        """Store the sequence up to which a stream contains none of the pending events."""
        ...
