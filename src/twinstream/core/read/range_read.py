"""Decide how a range of stream sequences is read so that nothing in it is missed.

Theory of operation
-------------------
A range ``[start, end)`` is read in pages (direct get batches, or pulls of an ephemeral consumer).
Both may be answered by a replica that lags behind the leader, and such a replica reports "no more
messages" for messages that are already stored and acknowledged. Empty answers, end markers and
pending counts of a page are therefore hints, never proof. Two things are proof:

1. a message with sequence ``end - 1`` or above was seen: a replica applies entries in order, so it
   had everything below as well;
2. the stream's leader, asked for the next message at or after the first unsettled sequence, has
   none below ``end``; where it has none at all, it must have shown meanwhile that it still leads
   (``twinstream.core.api.leadership``).

Until one of them holds, the read pauses a little and continues at the first unsettled sequence.
When the leader names a message inside the range, everything before it is settled too, so the
read goes on from there.

The object holds no clock and does no I/O: it says what to do (:attr:`RangeRead.step`), the caller
does it and reports what came back. Cost of the proof on a stream that does not move: at most two
leader requests for each filter, and one for the stream's state, per range.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

from attrs import frozen

from twinstream.errors import BadAnswer
from twinstream.core.read.read_report import ReadEnd

#: Messages asked for in one page. Direct get reaches most of its speed at some thousands a page,
#: and a page of 200-byte messages stays well inside ``PAGE_BYTES``.
PAGE_MESSAGES: Final = 20_000

#: Upper bound of one page in bytes (subjects, headers and payloads as the server counts them).
#: The server's own default is the whole of its pending limit (64 MiB), at which it drops a client
#: that reads slowly; a quarter of that leaves room.
PAGE_BYTES: Final = 16 * 1024 * 1024

#: An end behind every sequence: the read goes on until the leader has nothing left.
OPEN_END: Final = 1 << 63

#: First and longest pause in seconds while a replica catches up. Replicas lag by milliseconds;
#: the upper bound keeps a long stall from becoming a busy loop.
FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25


@frozen
class Page:
    """Read messages from ``seq`` on: at most ``batch`` of them and about ``max_bytes``."""

    seq: int
    batch: int
    max_bytes: int


@frozen
class AskLeader:
    """Ask the stream's leader for the next message at or after ``seq`` (leader get)."""

    seq: int


@frozen
class Pause:
    """Wait ``seconds``, then report :meth:`RangeRead.paused`."""

    seconds: float


@frozen
class Finished:
    """The range is settled. ``last_seq`` is the last message that was kept, 0 if there was none."""

    messages: int
    first_seq: int
    last_seq: int


Step: TypeAlias = Page | AskLeader | Pause | Finished
_S = TypeVar("_S", Page, AskLeader, Pause)


class RangeRead:
    """Progress of reading ``[start, end)`` of a stream.

    Drive it with a loop over :attr:`step`: for a ``Page``, hand each sequence to :meth:`accept`
    and report the end with :meth:`page_ended` (or :meth:`page_failed` when the connection or the
    server gave up); answer ``AskLeader`` with :meth:`leader_has`; answer ``Pause`` with
    :meth:`paused`. ``Finished`` is final.

    Raises ``ValueError`` for bounds that are no range of sequences.
    """

    __slots__ = (
        "_end",
        "_first",
        "_kept",
        "_last",
        "_next",
        "_page_bytes",
        "_page_messages",
        "_pause",
        "_step",
        "reason",
    )

    def __init__(
        self,
        start: int,
        end: int,
        *,
        page_messages: int = PAGE_MESSAGES,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        if start < 1 or end < start:
            raise ValueError(f"not a range: start {start}, end {end}; need 1 <= start <= end")
        if page_messages < 1 or page_bytes < 1:
            raise ValueError("a page needs room for one message and one byte at least")
        self._next = start
        self._end = end
        self._page_messages = page_messages
        self._page_bytes = page_bytes
        self._pause = FIRST_PAUSE
        self._kept = 0
        self._first = 0
        self._last = 0
        #: How the range is known to be complete; `CLOSED` until it is.
        self.reason = ReadEnd.CLOSED if end > start else ReadEnd.EMPTY
        self._step: Step = self._page_or_finish()

    @property
    def step(self) -> Step:
        """What to do now."""
        return self._step

    @property
    def is_open(self) -> bool:
        """Whether it goes on until the leader has nothing left, however late that is."""
        return self._end == OPEN_END

    @property
    def end(self) -> int:
        """The sequence behind the last one of the range."""
        return self._end

    @property
    def next_seq(self) -> int:
        """The first sequence that is not settled yet: where a new reader would continue."""
        return self._next

    @property
    def last_seq(self) -> int:
        """The last sequence that was kept, 0 as long as there is none."""
        return self._last

    @property
    def first_seq(self) -> int:
        """The first sequence that was kept, 0 as long as there is none."""
        return self._first

    def accept(self, seq: int) -> bool:
        """Take note of a message and return whether it belongs to the range.

        False for a message at or past the end (a filtered page over-reads) and for one that was
        settled before (a page that was asked for again).
        """
        if seq < self._next:
            return False
        if seq >= self._end:
            # Replicas apply in order: whoever has this one had everything below it.
            self._next = self._end
            return False
        self._next = seq + 1
        self._last = seq
        self._kept += 1
        if not self._first:
            self._first = seq
        return True

    def accept_run(self, first: int, last: int, count: int) -> bool:
        """Take note of ``count`` messages in ascending order if all of them belong to the range.

        False, and nothing noted, if one does not: `accept` then tells which.
        """
        if first < self._next or last >= self._end:
            return False
        self._next = last + 1
        self._last = last
        self._kept += count
        if not self._first:
            self._first = first
        return True

    def page_ended(self, *, more: bool) -> None:
        """Report the end of a page; ``more`` is the answering server's opinion of what is left."""
        page = self._expect(Page)
        if self._next >= self._end:
            self._finish(ReadEnd.SEEN)
        elif more and self._next > page.seq:
            self._pause = FIRST_PAUSE
            self._step = self._page_or_finish()
        else:
            self._step = AskLeader(self._next)

    def page_failed(self) -> None:
        """Report that a page broke off: continue at the first unsettled sequence after a pause."""
        self._expect(Page)
        if self._next >= self._end:
            self._finish(ReadEnd.SEEN)
        else:
            self._wait()

    def leader_has(self, seq: int | None) -> None:
        """Report the leader's next message at or after the asked sequence, ``None`` for nothing.

        Raises `BadAnswer` for a sequence below the asked one.
        """
        asked = self._expect(AskLeader)
        if seq is None or seq >= self._end:
            self._finish(ReadEnd.LEADER)
            return
        if seq < asked.seq:
            raise BadAnswer(f"the leader answered sequence {seq}, below the asked {asked.seq}")
        self._next = seq
        self._wait()

    def paused(self) -> None:
        """Report that the pause is over."""
        self._expect(Pause)
        self._step = self._page_or_finish()

    def _page_or_finish(self) -> Step:
        left = self._end - self._next
        if left <= 0:
            return Finished(self._kept, self._first, self._last)
        # A sequence holds at most one message, so asking for what is left never over-reads an
        # unfiltered range.
        return Page(self._next, min(left, self._page_messages), self._page_bytes)

    def _wait(self) -> None:
        self._step = Pause(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _finish(self, reason: ReadEnd) -> None:
        self.reason = reason
        self._next = self._end
        self._step = Finished(self._kept, self._first, self._last)

    def _expect(self, kind: type[_S]) -> _S:
        if not isinstance(self._step, kind):
            raise RuntimeError(f"expected the step {kind.__name__}, the read is at {self._step!r}")
        return self._step
