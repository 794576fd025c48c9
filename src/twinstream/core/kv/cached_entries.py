"""The entries of a local cache, merged from a watch and from writes through the cache.

A write through the cache is visible in the cache when the call returns. The watch delivers the
entry later, possibly after older revisions of the same key, which must not replace it. So the
highest revision of each key counts. If a key is deleted through the cache, its marker is kept until
the watch delivers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from twinstream.core.deadline import monotonic
from twinstream.records.entry import Entry

__all__ = ["CachedEntries", "ServerClock"]

V = TypeVar("V")


class ServerClock:
    """The server's time, computed from times that it sent and from the local monotonic clock.

    The server removes expired values by its own time. The client's system clock may be wrong.
    """

    def __init__(self, seen_ns: int) -> None:
        # The server's time minus the monotonic time, both in nanoseconds.
        self._ahead = seen_ns - _monotonic_ns()

    def note_time(self, time_ns: int) -> None:
        """Record a time of the server. Its present time is not below it."""
        self._ahead = max(self._ahead, time_ns - _monotonic_ns())

    def now(self) -> int:
        """Return the server's time as nanoseconds since 1970. It may be slightly too low."""
        return self._ahead + _monotonic_ns()


def _monotonic_ns() -> int:
    return round(monotonic() * 1e9)


class CachedEntries(Generic[V]):
    """The entries of a cache, by key.

    The owner must make changes (`delivered`, `caught_up`, `wrote`) one at a time, under a lock.
    Reads need no lock.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry[V]] = {}
        # The entries of a re-created bucket until the watch has delivered all of them, else None.
        self._next: dict[str, Entry[V]] | None = None
        # In one attribute, because it is read without the lock.
        self.reached = (1, 0)
        """The generation, and the highest revision that the watch has delivered of it."""

    def find(self, key: str) -> Entry[V] | None:
        """Return the entry of a key, or None if the key has no value."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.is_value else None

    def living(self) -> Iterator[Entry[V]]:
        """Iterate over the entries of the keys that have a value at the time of the call."""
        return iter([entry for entry in list(self._entries.values()) if entry.is_value])

    def delivered(self, entry: Entry[V], generation: int) -> None:
        """Add an entry from the watch. Another generation means that the bucket was re-created."""
        self._follow(generation)
        self.reached = generation, entry.revision
        entries = self._entries if self._next is None else self._next
        known = entries.get(entry.key)
        if known is not None and known.revision > entry.revision:
            return
        if entry.is_value:
            entries[entry.key] = entry
        else:
            entries.pop(entry.key, None)

    def caught_up(self, generation: int) -> None:
        """Record that the watch has delivered all initial values of a generation."""
        self._follow(generation)
        if self._next is not None:
            self._entries, self._next = self._next, None

    def _follow(self, generation: int) -> None:
        if generation != self.reached[0]:
            self.reached, self._next = (generation, 0), {}

    def wrote(self, entry: Entry[V], before: tuple[int, int]) -> None:
        """Add an entry that was written through the cache: a value or a marker.

        `before` is the value of `reached` before the write.
        """
        if self._next is not None:
            # The entry was written to the re-created bucket, whose revisions start at 1 again. Make
            # it visible now, and keep it when the entries of the old bucket are replaced.
            self._entries[entry.key] = entry
        entries = self._entries if self._next is None else self._next
        known = entries.get(entry.key)
        generation, delivered = self.reached
        if generation == before[0] and entry.revision <= before[1]:
            # The watch does not know yet that the bucket was re-created.
            is_newer = True
        elif known is None:
            # A thread may be held up between its write and this call. If the watch has delivered
            # the write, and the key has no entry, then the watch has delivered a later marker, too.
            is_newer = entry.revision > delivered
        else:
            is_newer = entry.revision > known.revision
        if is_newer:
            entries[entry.key] = entry
