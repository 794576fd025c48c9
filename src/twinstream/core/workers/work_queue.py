"""What waits for a worker: messages in the wanted order, and those to be tried again.

Messages of one key are worked on one after the other, in the order in which they were put. While a
message waits to be tried again, so do all others of its key; other keys go on.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

__all__ = ["WorkQueue"]

T = TypeVar("T")


class WorkQueue(Generic[T]):
    """Items by key. A key is free, or one of its items is in hand, or it sleeps until a next try.

    Not safe between threads: whoever shares it holds a lock.
    """

    def __init__(self) -> None:
        self._waiting: Final[dict[Hashable, deque[T]]] = {}
        self._free: Final[deque[Hashable]] = deque()
        self._sleeping: Final[list[tuple[float, int, Hashable]]] = []
        self._numbers = 0
        self.in_hand = 0
        """Items that were taken and not done."""
        self._size = 0

    def __len__(self) -> int:
        """Return how many items wait or are in hand."""
        return self._size + self.in_hand

    @property
    def waiting(self) -> int:
        """How many items are not in hand."""
        return self._size

    def put(self, key: Hashable, item: T) -> None:
        """Add an item behind those of its key."""
        self._size += 1
        queue = self._waiting.get(key)
        if queue is None:
            self._waiting[key] = deque((item,))
            self._free.append(key)
        else:
            queue.append(item)

    def take(self, now: float) -> tuple[Hashable, T] | None:
        """Return an item whose key is free, with the key, which is busy from now on."""
        while self._sleeping and self._sleeping[0][0] <= now:
            self._free.append(heapq.heappop(self._sleeping)[2])
        if not self._free:
            return None
        key = self._free.popleft()
        self._size -= 1
        self.in_hand += 1
        return key, self._waiting[key].popleft()

    def done(self, key: Hashable) -> None:
        """Note that the item in hand of a key is done."""
        self.in_hand -= 1
        if self._waiting[key]:
            self._free.append(key)
        else:
            del self._waiting[key]

    def again(self, key: Hashable, item: T, at: float) -> None:
        """Put the item in hand back at the head of its key, to be taken at `at` (monotonic)."""
        self.in_hand -= 1
        self._size += 1
        self._waiting[key].appendleft(item)
        self._numbers += 1
        heapq.heappush(self._sleeping, (at, self._numbers, key))

    @property
    def wake_at(self) -> float:
        """When the next key wakes up (monotonic); infinite when none sleeps."""
        return self._sleeping[0][0] if self._sleeping else float("inf")

    @property
    def has_free(self) -> bool:
        """Tell whether an item could be taken at once."""
        return bool(self._free)

    def clear(self) -> list[T]:
        """Take out all that waits; what is in hand stays until it is done."""
        items = [item for queue in self._waiting.values() for item in queue]
        for queue in self._waiting.values():
            queue.clear()
        waking = {key for _, _, key in self._sleeping} | set(self._free)
        for key in waking:
            del self._waiting[key]
        self._sleeping.clear()
        self._free.clear()
        self._size = 0
        return items
