"""How many messages a buffer may contain: limits by count, by bytes and by age."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, islice
from typing import Final

from twinstream.core.consume.pull_request import MANY, PullLimits

__all__ = ["BufferBudget"]

# Limit in bytes of a buffer that the caller limits by count only. A server counts the data it is
# writing as pending until all of it is written, so it may count twice as many bytes.
_MOST_BYTES: Final = 1 << 24
# Messages in a buffer until pace and size are known: enough to measure both, but few enough to stay
# in the buffer for a while.
_SMALL_START: Final = 32


class BufferBudget:
    """The contents of a buffer and its limits.

    The arguments `outstanding` and `outstanding_bytes` of the methods are the messages and bytes
    that were requested and have not arrived.
    """

    def __init__(self, limits: PullLimits) -> None:
        self._limits: Final = limits
        self.buffered = 0
        """The number of buffered messages."""
        self.buffered_bytes = 0
        """Their size as counted by the server, if the buffer is limited by bytes."""
        start = min(limits.max_messages, _SMALL_START)
        self._by_count: Final = limits.max_bytes is None or limits.max_messages < MANY
        self._by_age = limits.max_messages if limits.max_age is None else start
        self._by_size = limits.max_messages if limits.max_bytes is not None else start
        self._allowed = min(self._by_age, self._by_size)
        self._size = 0
        self._pace = 0.0
        self._handed_at = 0.0

    def note_size(self, size: int) -> None:
        """Record the size of an arrived message. A buffer limited by bytes does not need this."""
        if size == self._size:
            return
        # The size grows at once but shrinks slowly, since later messages may be long again.
        self._size = max(size, self._size - (self._size >> 3))
        self._by_size = max(1, min(self._limits.max_messages, _MOST_BYTES // max(1, self._size)))
        self._allowed = min(self._by_age, self._by_size)

    def handed_over(self, size: int, now: float, count: int) -> None:
        """Record that the caller received `count` messages, with `size` bytes in total."""
        self.buffered -= count
        self.buffered_bytes -= size
        if self._limits.max_age is not None and count:
            self._note_pace(now, count, self._limits.max_age)

    def _note_pace(self, now: float, count: int, max_age: float) -> None:
        if self._handed_at:
            # A moving average over about eight messages, in seconds per message. It includes the
            # time that the caller waited for messages, so `fitting` may be too low. While the
            # stream has more messages, the caller does not wait.
            mean = (now - self._handed_at) / count
            self._pace += (mean - self._pace) * min(1.0, count / 8)
            fitting = int(max_age / self._pace) if self._pace > 0 else self._limits.max_messages
            self._by_age = max(1, min(self._limits.max_messages, fitting))
            self._allowed = min(self._by_age, self._by_size)
        self._handed_at = now

    def grant(self, outstanding: int, outstanding_bytes: int, sizes: Iterable[int]) -> int:
        """Return how many messages the caller may receive before `is_low` can become true.

        `sizes` are the sizes of the buffered messages, in order, if the buffer is limited by bytes.
        """
        limits = self._limits
        granted = self.buffered
        if self._by_count:
            spare = self.buffered + outstanding - self._threshold() - 1
            granted = max(0, min(granted, spare))
        if limits.max_bytes is not None:
            spare = self.buffered_bytes + outstanding_bytes - limits.threshold_bytes - 1
            fitting = bisect_right(list(accumulate(islice(sizes, self.buffered))), spare)
            # A pull is due only when both thresholds are reached.
            granted = max(granted, fitting) if self._by_count else fitting
        return granted

    def may_pass(self, outstanding: int) -> bool:
        """Return whether one more message leaves `is_low` false, for an empty buffer."""
        return outstanding - 1 > self._threshold()

    def is_low(self, outstanding: int, outstanding_bytes: int) -> bool:
        """Return whether the contents and what was requested are few enough for a pull."""
        limits = self._limits
        if limits.max_bytes is not None:
            wanted_bytes = self.buffered_bytes + outstanding_bytes
            if wanted_bytes > limits.threshold_bytes or wanted_bytes >= limits.max_bytes:
                return False
            if not self._by_count:
                return True
        wanted = self.buffered + outstanding
        return wanted <= self._threshold() and wanted < self._allowed

    def room(self, outstanding: int, outstanding_bytes: int) -> tuple[int, int | None]:
        """Return the numbers of messages and bytes to request.

        They are one message and None if nothing fits: a pull that only keeps the pin requests one
        message more than fits.
        """
        batch, max_bytes = self._limits.max_messages, self._limits.max_bytes
        if self._by_count:
            batch = max(1, self._allowed - self.buffered - outstanding)
        if max_bytes is not None:
            max_bytes -= self.buffered_bytes + outstanding_bytes
            return (batch, max_bytes) if max_bytes > 0 else (1, None)
        return batch, None

    def _threshold(self) -> int:
        """Return the largest number of buffered and outstanding messages at which a pull is due."""
        threshold = self._limits.threshold
        if self._allowed < self._limits.max_messages:
            return min(threshold, self._allowed // 2)
        return threshold
