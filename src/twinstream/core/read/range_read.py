"""Decide how a range of stream sequences is read so that no message in it is missed.

Theory of operation
-------------------
A range `[start, end)` is read in pages (direct get batches, or pulls of an ephemeral consumer). A
replica that lags behind the leader may send a page. Such a replica reports "no more messages"
although later messages are already stored and acknowledged. Empty responses, end markers and
pending counts of a page are therefore hints, not proof. A sequence is settled once its message was
read, or once it is known that the stream has no message of the range at it. There are two proofs:

1. A message with sequence `end - 1` or above was received. A replica applies entries in order, so
   it had all earlier messages, too.
2. The stream's leader replies that it has no message at or after the first unsettled sequence and
   below `end`. If its reply shows no message at or after `end` either, the reply is final only if
   the server also proves that it is the leader (`server_faults.final_reply`).

Without a proof, the read pauses briefly and continues at the first unsettled sequence. If the
leader returns a message inside the range, all sequences before it are settled, too, and the read
continues at this message.

`RangeRead` has no clock and does no I/O: `RangeRead.step` is the next step, and the caller carries
it out and reports the result. On a stream without changes, the proof for a range takes at most two
leader requests for each filter, and one request for the stream's state.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

from attrs import frozen

from twinstream.core.deadline import Backoff
from twinstream.core.read.page_limits import PAGE_BYTES, PAGE_MESSAGES
from twinstream.core.read.read_report import ReadEnd
from twinstream.errors import InvalidResponse

OPEN_END: Final = 1 << 65
"""The end of a range without an end: such a read continues until the leader has no more messages.

It is above all sequences, since servers count to 2**64 - 1.
"""

BACKOFF: Final = Backoff(0.005, 0.25)
"""First and longest pause in seconds while a replica catches up.

Replicas lag by milliseconds; the upper limit prevents a busy loop during a long stall.
"""


@frozen
class Page:
    """The step to read messages from `seq` on: at most `batch` messages and about `max_bytes`."""

    seq: int
    batch: int
    max_bytes: int


@frozen
class AskLeader:
    """The step to ask the stream's leader for the next message at or after `seq` (leader get)."""

    seq: int


@frozen
class Pause:
    """The step to wait `seconds`, then call `RangeRead.paused`."""

    seconds: float


@frozen
class Finished:
    """The last step: the range is settled.

    `messages` is the number of accepted messages. `first_seq` and `last_seq` are the sequences of
    the first and the last of them, 0 if there are none.
    """

    messages: int
    first_seq: int
    last_seq: int


Step: TypeAlias = Page | AskLeader | Pause | Finished
_S = TypeVar("_S", Page, AskLeader, Pause)


class RangeRead:
    """The progress of a read of the range `[start, end)` of a stream.

    The caller carries out `step` again and again, until it is `Finished`:

    * `Page`: pass the sequence of each message to `accept`, then call `page_ended`. If the
      connection or the server failed, call `page_failed` instead.
    * `AskLeader`: pass the result to `leader_has`.
    * `Pause`: wait, then call `paused`.

    Raises `ValueError` for bounds that are not a range of sequences.
    """

    __slots__ = (
        "_end",
        "_first",
        "_kept",
        "_last",
        "_next",
        "_page_bytes",
        "_page_messages",
        "_pauses",
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
            raise ValueError("page_messages and page_bytes must be at least 1")
        self._next = start
        self._end = end
        self._page_messages = page_messages
        self._page_bytes = page_bytes
        self._pauses = 0
        self._kept = 0
        self._first = 0
        self._last = 0
        self.reason = ReadEnd.CLOSED if end > start else ReadEnd.EMPTY
        """Why the range is known to be complete; `CLOSED` as long as it is not."""
        self._step: Step = self._page_or_finish()

    @property
    def step(self) -> Step:
        """The next step, which the caller carries out."""
        return self._step

    @property
    def is_open(self) -> bool:
        """Whether the range has no end: the read ends when the leader has no more messages."""
        return self._end == OPEN_END

    @property
    def end(self) -> int:
        """The sequence after the last one of the range."""
        return self._end

    @property
    def next_seq(self) -> int:
        """The first sequence that is not settled yet, at which another read can continue."""
        return self._next

    @property
    def last_seq(self) -> int:
        """The last accepted sequence, 0 if there is none yet."""
        return self._last

    @property
    def first_seq(self) -> int:
        """The first accepted sequence, 0 if there is none yet."""
        return self._first

    def accept(self, seq: int) -> bool:
        """Record a message and return whether it belongs to the range.

        Return False for a message at or after the end, which a page with a filter may contain, and
        for a message whose sequence is already settled, which a repeated page may contain.
        """
        if seq < self._next:
            return False
        if seq >= self._end:
            # A replica stores messages in order, so the sender had all messages below this one.
            self._next = self._end
            return False
        self._next = seq + 1
        self._last = seq
        self._kept += 1
        if not self._first:
            self._first = seq
        return True

    def accept_run(self, first: int, last: int, count: int) -> bool:
        """Record `count` messages with ascending sequences from `first` to `last`.

        If one of them does not belong to the range or is already settled, record none and return
        False. The caller then uses `accept` for each message.
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
        """Report the end of a page; `more` is true if the server reported more messages."""
        page = self._expect(Page)
        if self._next >= self._end:
            self._finish(ReadEnd.SEEN)
        elif more and self._next > page.seq:
            self._pauses = 0
            self._step = self._page_or_finish()
        else:
            self._step = AskLeader(self._next)

    def page_failed(self) -> None:
        """Report that a page failed: continue at the first unsettled sequence after a pause."""
        self._expect(Page)
        if self._next >= self._end:
            self._finish(ReadEnd.SEEN)
        else:
            self._wait()

    def leader_has(self, seq: int | None) -> None:
        """Report the sequence of the message that the leader returned, None if it has no more.

        Raises `InvalidResponse` for a sequence below the requested one.
        """
        asked = self._expect(AskLeader)
        if seq is None or seq >= self._end:
            self._finish(ReadEnd.LEADER)
            return
        if seq < asked.seq:
            raise InvalidResponse(
                f"the leader returned sequence {seq}, below the requested {asked.seq}"
            )
        self._next = seq
        self._wait()

    def paused(self) -> None:
        """Report that the pause is over."""
        self._expect(Pause)
        self._step = self._page_or_finish()

    def _page_or_finish(self) -> Step:
        remaining = self._end - self._next
        if remaining <= 0:
            return Finished(self._kept, self._first, self._last)
        # A sequence holds at most one message, so requesting the number of remaining sequences
        # never over-reads an unfiltered range.
        return Page(self._next, min(remaining, self._page_messages), self._page_bytes)

    def _wait(self) -> None:
        self._pauses += 1
        self._step = Pause(BACKOFF.pause(self._pauses))

    def _finish(self, reason: ReadEnd) -> None:
        self.reason = reason
        self._next = self._end
        self._step = Finished(self._kept, self._first, self._last)

    def _expect(self, kind: type[_S]) -> _S:
        if not isinstance(self._step, kind):
            raise RuntimeError(f"expected the step {kind.__name__}, the read is at {self._step!r}")
        return self._step
