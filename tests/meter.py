"""How many handlers run at once."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

__all__ = ["Meter"]


class Meter:
    """Counts the messages in hand, in total and by subject. Handlers in threads may share it."""

    def __init__(self) -> None:
        # Another thread may run between reading a count and writing it.
        self._lock = threading.Lock()
        self.now = self.most = self.overlaps = 0
        self.by_subject: Counter[str] = Counter()
        self.seen: list[int] = []

    def enter(self, message: Any) -> None:
        """Note that a handler has begun with a message."""
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.by_subject[message.subject] += 1
            self.overlaps += self.by_subject[message.subject] > 1
            self.seen.append(message.metadata.stream_seq)

    def leave(self, message: Any) -> None:
        """Note that a handler has ended."""
        with self._lock:
            self.now -= 1
            self.by_subject[message.subject] -= 1
