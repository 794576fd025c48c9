"""The interface through which a relay uses an outbox.

`SqliteOutbox` implements this interface; you can write your own implementation. The methods may
block. A relay calls one method at a time, possibly from different threads. Changes must be durable
when a method returns. The relay reports an `OSError` or a temporary SQLite error and repeats the
call. Any other error ends the relay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from twinstream.core.exactly_once.outbox import OutboxEvent

__all__ = ["OutboxStore"]


class OutboxStore(Protocol):
    """The storage of an outbox: its events in insertion order, and a floor for each stream.

    The floor is a sequence of the stream. No message up to the floor is one of the pending events.
    """

    def claim(self) -> bool:
        """Claim the outbox for this relay, until `release` or the end of the process.

        Return False if another relay has claimed the outbox, else True.
        """
        ...

    def release(self) -> None:
        """End the claim, so that another relay can claim the outbox."""
        ...

    def pending(self, limit: int, after: int = 0) -> list[OutboxEvent]:
        """Return up to `limit` pending events with numbers above `after`, in order of number.

        Leave out refused events, and all events whose key is that of a refused event. An event that
        cannot be read has a `damage`.
        """
        ...

    def pending_ids(self) -> Mapping[str, int]:
        """Return the number of each event in the outbox, including refused ones, by message id.

        Refused events are included for two reasons: they may become pending again, and an earlier
        attempt may have stored them.
        """
        ...

    def done(self, numbers: Iterable[int]) -> None:
        """Remove the events with these numbers, because the stream has stored them.

        Args:
            numbers: Numbers of the events.
        """
        ...

    def refuse(self, number: int, reason: str) -> None:
        """Mark an event as refused, with the reason why it cannot be stored.

        Args:
            number: Number of the event.
            reason: Why, in words.
        """
        ...

    def floor(self, stream_name: str) -> int | None:
        """Return the floor of a stream, or None if it was never set.

        Args:
            stream_name: Name of the stream.
        """
        ...

    def set_floor(self, stream_name: str, seq: int) -> None:
        """Store the floor of a stream.

        Args:
            stream_name: Name of the stream.
            seq: A sequence up to which no message of the stream is a pending event.
        """
        ...
