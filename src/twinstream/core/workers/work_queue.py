"""The queue of a worker: messages by key, including messages that wait for a retry.

Messages with the same key are processed one after the other, in the order in which they were
added. While a message waits for its retry, all other messages with its key also wait. Messages with
other keys continue.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

__all__ = ["WorkQueue"]

T = TypeVar("T")


class WorkQueue(Generic[T]):
    """A queue of items by key.

    A key is in progress while one of its items is in progress. It is asleep while its first item
    waits for a retry. Otherwise it is free. Callers in several threads need a lock, because the
    queue is not thread-safe.
    """

    def __init__(self) -> None:
        self._waiting: Final[dict[Hashable, deque[T]]] = {}
        self._free: Final[deque[Hashable]] = deque()
        self._sleeping: Final[list[tuple[float, int, Hashable]]] = []
        self._numbers = 0
        self.in_hand = 0
        """The number of items in progress."""
        self._size = 0

    def __len__(self) -> int:
        """Return the number of items that wait or are in progress."""
        return self._size + self.in_hand

    @property
    def waiting(self) -> int:
        """The number of items that are not in progress."""
        return self._size

    def put(self, key: Hashable, item: T) -> None:
        """Add an item after the other items with its key."""
        self._size += 1
        queue = self._waiting.get(key)
        if queue is None:
            self._waiting[key] = deque((item,))
            self._free.append(key)
        else:
            queue.append(item)

    def take(self, now: float) -> tuple[Hashable, T] | None:
        """Return a free key and its next item, or None. The key is then in progress."""
        while self._sleeping and self._sleeping[0][0] <= now:
            self._free.append(heapq.heappop(self._sleeping)[2])
        if not self._free:
            return None
        key = self._free.popleft()
        self._size -= 1
        self.in_hand += 1
        return key, self._waiting[key].popleft()

    def done(self, key: Hashable) -> None:
        """Record that the item in progress of a key is done."""
        self.in_hand -= 1
        if self._waiting[key]:
            self._free.append(key)
        else:
            del self._waiting[key]

    def again(self, key: Hashable, item: T, at: float) -> None:
        """Make the item in progress the first of its key again. The key sleeps until `at`."""
        self.in_hand -= 1
        self._size += 1
        self._waiting[key].appendleft(item)
        self._numbers += 1
        heapq.heappush(self._sleeping, (at, self._numbers, key))

    @property
    def wake_at(self) -> float:
        """The time at which the first sleeping key becomes free, infinity if none sleeps."""
        return self._sleeping[0][0] if self._sleeping else float("inf")

    @property
    def has_free(self) -> bool:
        """Whether a key is free. `take` also frees keys that no longer sleep."""
        return bool(self._free)

    def clear(self) -> list[T]:
        """Remove and return all items that are not in progress."""
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
