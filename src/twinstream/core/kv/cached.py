"""The entries of a local cache, merged from a watch and the program's own writes.

An own write is visible in the cache when the call returns. The watch delivers it later, possibly
after older revisions of the same key, which must not replace it. So the highest revision of each
key counts, and the marker of a key that this program deleted is kept until the watch delivers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from twinstream.core.kv.entry import Entry

__all__ = ["CachedEntries"]

V = TypeVar("V")


class CachedEntries(Generic[V]):
    """The entries of a cache, by key.

    The caller must make changes (entries from the watch, its own writes) one at a time, under a
    lock. Reads need no lock.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry[V]] = {}
        # The incomplete new state after the bucket was re-created.
        self._next: dict[str, Entry[V]] | None = None
        self._generation = 1

    def find(self, key: str) -> Entry[V] | None:
        """Return the entry of a key that has a value."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.is_value else None

    def living(self) -> Iterator[Entry[V]]:
        """Return the entries of the keys that currently have a value."""
        return iter([entry for entry in list(self._entries.values()) if entry.is_value])

    def delivered(self, entry: Entry[V], generation: int) -> None:
        """Add an entry from the watch. A higher generation means that the bucket was re-created."""
        if generation != self._generation:
            self._generation, self._next = generation, {}
        entries = self._entries if self._next is None else self._next
        known = entries.get(entry.key)
        if known is not None and known.revision > entry.revision:
            return
        if entry.is_value:
            entries[entry.key] = entry
        else:
            entries.pop(entry.key, None)

    def caught_up(self, generation: int) -> None:
        """Record that the state of a generation is complete."""
        if generation != self._generation:
            # The re-created bucket is empty: no entry of this generation was delivered.
            self._generation, self._next = generation, {}
        if self._next is not None:
            self._entries, self._next = self._next, None

    def wrote(self, entry: Entry[V]) -> None:
        """Add an entry that this program wrote: a value or a marker."""
        known = self._entries.get(entry.key)
        if known is None or known.revision < entry.revision:
            self._entries[entry.key] = entry
