"""Decide how to acquire, renew and release one slot, and how long its lease is valid.

Theory of operation. A slot is a subject that has one record or none. The server stores a publish
only if the last sequence of the subject is the expected sequence. The engine acquires a slot by
publishing a record with expected sequence 0 (no record). It renews the slot by publishing a record
with the sequence of its last record, and releases the slot by deleting that record. Each record has
a TTL. The server removes a record when its TTL has passed on the server's clock, never before
(tested on 2.11 to 2.15, also across restarts, kills and pauses).

A holder that sent its record at time S may consider the lease valid until S + TTL - margin, because
the server stored the record after S and keeps it for the TTL. The margin allows for differences
between the clocks. A renewal is valid from the time at which it was sent. When the lease is no
longer valid, it is permanently lost, even if a late response shows that the server still has the
record, because the loss may already have been reported.

If a response is lost, the outcome is unknown until the next attempt. If the first record was not
stored, the server stores the next one. Otherwise the server refuses the next one, and the engine
looks up the stored record. A record contains its tenure (a name for one attempt to become a
holder) and the number of the attempt. So the engine recognises its own record, and the lease counts
from the time at which that attempt was sent.

A reply may not be final (see `server_faults.final_reply`). So the engine ignores a record that is
older than the last one it knows to be stored. For other replies that would end a lease or an
acquisition, `needs_proof` returns True: the owner then has to confirm them by the leader, or to
report `unanswered`. A record of another client that is newer than the last own one needs no proof.

The owner reports events (`stored`, `refused`, `unanswered`, `looked`, `dropped`). `poll` returns
the action to take, `wake_at` the time of the next poll. One action is in flight at a time. Times
are seconds of one monotonic clock. The engine itself has no I/O, no clock and no randomness.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Final

from attrs import frozen

from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Backoff, Failures, Seconds, finite_seconds
from twinstream.errors import BadArgument

__all__ = ["FOREVER", "Action", "Drop", "LeaseEngine", "Look", "Phase", "Put", "Terms"]

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
# Maximum seconds to wait for a response before the next attempt, for example during an election.
_LONGEST_PATIENCE: Final = 5.0
# How many times a slot that refused a record may be found empty before the engine gives up. Other
# clients may acquire and release the slot faster than this client can look it up.
_MOST_EMPTY_LOOKS: Final = 3
_SHORTEST_TTL: Final = 2
# How many times a lease is renewed in the time for which it is valid. All but one may fail.
_RENEWALS: Final = 3


@frozen
class Terms:
    """The time to live of records, and the safety margin of their holder.

    The server removes a record after `ttl` seconds. Its holder considers the lease invalid `margin`
    seconds earlier. With an infinite `ttl`, a record stays until it is deleted.
    """

    ttl: float
    margin: float

    @classmethod
    def of(cls, ttl: Seconds, margin: Seconds | None) -> Terms:
        """Return validated terms. The default margin is a quarter of the TTL, at most 1 s.

        Raises `BadArgument` for an invalid TTL or margin.
        """
        whole = finite_seconds(ttl, "ttl")
        if whole < _SHORTEST_TTL or whole != int(whole):
            raise BadArgument(
                f"ttl must be whole seconds from {_SHORTEST_TTL}, got {ttl!r}:"
                " the server counts in seconds"
            )
        spare = min(1.0, whole / 4) if margin is None else finite_seconds(margin, "margin")
        if not 0 < spare <= whole / 2:
            raise BadArgument(
                f"margin must be above 0 and at most half the ttl ({whole / 2:g} s), got {margin!r}"
            )
        return cls(whole, spare)

    @classmethod
    def period(cls, per: Seconds, what: str) -> Terms:
        """Return the terms of records that stay for `per` seconds and are never renewed.

        Raises `BadArgument`, with `what` in its message, unless `per` is whole seconds from 1.
        """
        whole = finite_seconds(per, what)
        if whole < 1 or whole != int(whole):
            raise BadArgument(
                f"{what} must be whole seconds from 1, got {per!r}: the server counts in seconds"
            )
        return cls(whole, 0.0)

    @property
    def belief(self) -> float:
        """The time in seconds for which a lease is valid after its record was sent."""
        return self.ttl - self.margin

    @property
    def interval(self) -> float:
        """The time in seconds between two renewals. Two of three renewals may fail."""
        return self.belief / _RENEWALS


FOREVER: Final = Terms(math.inf, 0.0)


class Phase(Enum):
    """The state of a lease."""

    ASKING = auto()
    """The engine tries to acquire the slot."""
    REFUSED = auto()
    """Another client has the slot; `ask_again` retries."""
    HELD = auto()
    """The engine has acquired the slot. The lease is valid while `believes` returns True."""
    LEAVING = auto()
    """The engine is releasing the slot; the lease is no longer valid."""
    LEFT = auto()
    """The slot is released, or its final record is stored."""
    LOST = auto()
    """The lease is no longer valid; `reason` is why the engine lost it."""


@frozen
class Put:
    """The action to store a record if `expected` is the slot's last sequence; 0 means none."""

    attempt: int
    expected: int
    token: int
    final: bool


@frozen
class Look:
    """The action to request the slot's record from the stream's leader."""


@frozen
class Drop:
    """The action to delete the record at the sequence `seq`."""

    seq: int


Action = Put | Look | Drop


class _SentRecords:
    """The attempts to store a record, counted from 1, and when each of them was sent."""

    def __init__(self) -> None:
        self.count = 0
        # Without the attempts up to the last one that is known to be stored.
        self._sent_at: dict[int, float] = {}

    def add(self, now: float) -> int:
        """Note an attempt that is sent now; return its number."""
        self.count += 1
        self._sent_at[self.count] = now
        return self.count

    def is_pending(self, attempt: int) -> bool:
        """Return whether an attempt waits for its confirmation.

        The confirmation of a later attempt also ends the wait.
        """
        return attempt in self._sent_at

    def confirm(self, attempt: int) -> float:
        """Note that the record of an attempt is stored; return when it was sent."""
        sent_at = self._sent_at[attempt]
        self._sent_at = {each: at for each, at in self._sent_at.items() if each > attempt}
        return sent_at

    def expire_at(self, ttl: float) -> float:
        """Return when all unconfirmed records have expired; minus infinity if there is none."""
        return max((at + ttl for at in self._sent_at.values()), default=-math.inf)


class LeaseEngine:
    """The state machine of one slot and one tenure. The module docstring explains its rules."""

    def __init__(self, terms: Terms, tenure: str, now: float) -> None:
        self.terms: Final = terms
        self.tenure: Final = tenure
        self.phase = Phase.ASKING
        self.token = 0
        """The fencing token: the sequence with which the slot was acquired; 0 before that."""
        self.until = -math.inf
        """The time at which the lease becomes invalid unless it is renewed."""
        self.holder: SlotRecord | None = None
        """The record of another client in the slot, if a look-up found one; else None."""
        self.reason = ""
        """The reason why the lease was lost, or the last problem."""
        self.seq = 0
        """The sequence of the engine's last record if the slot is known to have it, else 0."""
        self._sent: Final = _SentRecords()
        self._look = False
        self._empty_looks = 0
        longest = min(_LONGEST_PAUSE, max(terms.interval, _FIRST_PAUSE))
        self._failures: Final = Failures(Backoff(_FIRST_PAUSE, longest))
        self._again_at = now
        self._final = False
        self._expired_at = math.inf

    # ---- state

    def believes(self, now: float) -> bool:
        """Return whether the lease is valid, so that no other client can have the slot."""
        return self.phase is Phase.HELD and now < self.until

    @property
    def is_over(self) -> bool:
        """Whether the engine has nothing more to do."""
        return self.phase in {Phase.REFUSED, Phase.LEFT, Phase.LOST}

    @property
    def may_be_stored(self) -> bool:
        """Whether the server may have a record of this tenure while the slot is not acquired."""
        return self.phase is Phase.ASKING and self._sent.count > 0

    def wake_at(self) -> float:
        """Return the time at which to poll again; infinity if no poll is needed."""
        if self.is_over:
            return math.inf
        return min(self._again_at, self.until) if self.phase is Phase.HELD else self._again_at

    def patience(self, now: float) -> float:
        """Return how many seconds to wait for the response to an action that starts now."""
        if self.phase is Phase.HELD:
            return max(0.0, min(self.until - now, max(self.terms.interval / 2, _LONGEST_PAUSE)))
        return min(max(self.terms.belief / 2, _LONGEST_PAUSE), _LONGEST_PATIENCE)

    def poll(self, now: float) -> Action | None:
        """Return the action to take now, or None. A `Put` counts as sent at `now`."""
        self._lapse(now)
        if self.is_over or now < self._again_at:
            return None
        if self._look:
            return Look()
        if self.phase is Phase.LEAVING and not self._final:
            return Drop(self.seq)
        return Put(self._sent.add(now), self.seq, self.token, self._final)

    # ---- events

    def stored(self, attempt: int, seq: int, now: float) -> None:
        """Record that the server has stored the record of `attempt` at `seq`."""
        self._lapse(now)
        self._confirm_record(attempt, seq, self.token or seq, now)

    def refused(self, now: float) -> None:
        """Record that the server refused a record because its expected sequence did not match."""
        self._lapse(now)
        self._look, self._again_at = True, now

    def unanswered(self, reason: str, now: float, *, look: bool = False) -> None:
        """Record an unknown outcome or a temporary failure; `look` is true to look up the slot."""
        self.reason = reason
        self._lapse(now)
        self._look = self._look or look
        self._wait(now)

    def needs_proof(self, record: SlotRecord | None) -> bool:
        """Return whether a reply to a look-up would wrongly end a lease or an acquisition.

        It would if the reply is not final.
        """
        if record is None:
            return self.phase in {Phase.HELD, Phase.LEAVING}
        return record.tenure != self.tenure and self.phase is Phase.ASKING

    def looked(self, record: SlotRecord | None, now: float) -> None:
        """Process the slot's record that the leader returned; None means that it has none."""
        self._lapse(now)
        self._look = False
        if record is not None and record.tenure == self.tenure:
            self._recognise(record, now)
        elif record is not None and record.seq < self.seq:
            # The look-up is outdated, because the server has confirmed a newer record.
            self._wait(now)
        elif self.phase is Phase.HELD:
            self._lose("its record was removed" if record is None else f"{record.owner} has it now")
        elif self.phase is Phase.LEAVING:
            self._end("its record was removed")
        elif self.phase is Phase.ASKING:
            self._make_room(record, now)

    def dropped(self, found: bool, now: float) -> None:
        """Process the response to a `Drop`; `found` is false if the record did not exist."""
        if found:
            self.phase = Phase.LEFT
        else:
            self._look, self._again_at = True, now

    def ask_again(self, now: float) -> None:
        """Try to acquire the slot again after a refusal."""
        if self.phase is Phase.REFUSED:
            self.phase = Phase.ASKING
            self.holder, self._empty_looks, self._again_at = None, 0, now

    def leave(self, now: float, *, final: bool = False) -> None:
        """Release the slot. With `final`, store a last record instead of deleting the record."""
        self._lapse(now)
        if self.is_over:
            return
        if self.phase is Phase.ASKING and not self._sent.count:
            self.phase = Phase.LEFT
            return
        # Without a confirmed record, the server may have an unconfirmed one.
        self._look = self._look or not self.seq
        confirmed = self.until + self.terms.margin
        self._expired_at = max(confirmed, self._sent.expire_at(self.terms.ttl))
        self.phase, self._final, self._again_at = Phase.LEAVING, final, now

    def fail(self, reason: str) -> None:
        """End the lease because of a permanent failure, such as a closed connection."""
        if not self.is_over:
            self._lose(reason)

    # ---- internal

    def _lapse(self, now: float) -> None:
        if self.phase is Phase.HELD and now >= self.until:
            because = f" ({self.reason})" if self.reason else ""
            self._lose(f"it was not renewed in time{because}")

    def _lose(self, reason: str) -> None:
        self.phase, self.reason = Phase.LOST, reason

    def _end(self, reason: str) -> None:
        """End the release of a slot without a record; if a final record was due, it is a loss."""
        if self._final:
            self._lose(reason)
        else:
            self.phase = Phase.LEFT

    def _wait(self, now: float) -> None:
        if self.phase is Phase.LEAVING and now >= self._expired_at:
            self._end(f"its record expired ({self.reason})")
        self._again_at = now + self._failures.add()

    def _recognise(self, record: SlotRecord, now: float) -> None:
        """Process a record of this tenure that a look-up found. The response to it may be lost."""
        if record.seq > self.seq and self._sent.is_pending(record.attempt):
            self._confirm_record(record.attempt, record.seq, record.token, now)
        else:
            self._wait(now)  # The look-up is outdated, or an attempt is still in flight.

    def _confirm_record(self, attempt: int, seq: int, token: int, now: float) -> None:
        """Record that the last record of the slot is that of `attempt`, at `seq`."""
        sent = self._sent.confirm(attempt)
        self.seq, self.token = seq, token
        self._failures.clear()
        if self.phase is Phase.LEAVING:
            if self._final and attempt == self._sent.count:
                self.phase = Phase.LEFT
            self._again_at = now
        elif self.phase in {Phase.ASKING, Phase.HELD}:
            self.until = max(self.until, sent + self.terms.belief)
            self.reason = ""
            # A confirmation that arrives too late does not make the lease valid. The engine then
            # renews it immediately.
            if now < self.until:
                self.phase = Phase.HELD
                self._again_at = sent + self.terms.interval
            else:
                self._again_at = now

    def _make_room(self, record: SlotRecord | None, now: float) -> None:
        """Process a look-up while acquiring: retry if the slot is empty, else give up for now."""
        self.seq = self.token = 0
        if record is None and self._empty_looks < _MOST_EMPTY_LOOKS:
            self._empty_looks += 1
            self._again_at = now
        else:
            self.phase, self.holder = Phase.REFUSED, record
