"""Acquiring, renewing and releasing one slot: the next action, and how long the lease is valid.

Theory of operation. A slot is a subject that has one record or none. The server stores a publish
only if the last sequence of the subject is the expected one. A slot is acquired by publishing with
expected sequence 0 (no record), renewed by publishing with the sequence of our last record, and
released by deleting that sequence. Each record has a TTL, and the server releases a slot when its
clock is that far beyond the time at which it stored the record, never before (tested on 2.11 to
2.15, also across restarts, kills and pauses).

So a holder that sent its record at S on its own clock may consider the lease valid until
S + TTL - margin: the server stored the record after S. The margin allows for differences between
the clocks. A renewal counts from the time at which it was sent. Once its validity has ended the
lease is permanently lost, even if a late response shows that the server still has the record: the
loss may already have been reported.

If a response is lost, the outcome is unknown. The next attempt decides: if the lost one was not
stored, this one is; otherwise it is refused and the record is looked up. A record of our own tenure
contains the number of the attempt, and the time at which that attempt was sent counts. A look-up
may return an old state (a deposed leader may reply), so it never moves anything back.

The owner reports events (`stored`, `refused`, `unanswered`, `looked`, `dropped`); `poll` returns
the action to take and `wake_at` when to poll again. One action is in flight at a time. Times are
seconds of one monotonic clock. The engine itself has no I/O, no clock and no randomness.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Final

from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.deadline import Backoff, Seconds, finite_seconds
from twinstream.errors import BadArgument
from twinstream.models.records import frozen

__all__ = ["FOREVER", "Action", "Drop", "LeaseEngine", "Look", "Phase", "Put", "Terms"]

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
# Seconds after which a lost request is repeated at the latest, for example during an election.
_LONGEST_PATIENCE: Final = 5.0
# Look-ups of an empty slot that refused a record: others acquire and release it faster than we do.
_MOST_EMPTY_LOOKS: Final = 3
_SHORTEST_TTL: Final = 2


@frozen
class Terms:
    """How long a record is valid on the server, and how much earlier its holder gives it up.

    `ttl` and `margin` are in seconds; with an infinite `ttl` a record stays until it is deleted.
    """

    ttl: float
    margin: float

    @classmethod
    def of(cls, ttl: Seconds, margin: Seconds | None) -> Terms:
        """Return validated terms; the default margin is a quarter of the TTL, at most 1 s."""
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
        """Return the terms of records that are never renewed: they stay for a period."""
        whole = finite_seconds(per, what)
        if whole < 1 or whole != int(whole):
            raise BadArgument(
                f"{what} must be whole seconds from 1, got {per!r}: the server counts in seconds"
            )
        return cls(whole, 0.0)

    @property
    def belief(self) -> float:
        """Seconds after the sending of a record during which its holder considers it valid."""
        return self.ttl - self.margin

    @property
    def interval(self) -> float:
        """Seconds between two renewals, such that two of three may fail."""
        return self.belief / 3


FOREVER: Final = Terms(math.inf, 0.0)


class Phase(Enum):
    """The state of a lease."""

    ASKING = auto()
    """The engine tries to acquire the slot."""
    REFUSED = auto()
    """Another holder has the slot; `ask_again` retries."""
    HELD = auto()
    """The engine has the slot, as long as `believes` returns True."""
    LEAVING = auto()
    """The engine is releasing the slot; the lease is no longer valid."""
    LEFT = auto()
    """The slot is released, or has the final record."""
    LOST = auto()
    """The engine had the slot, but the lease is no longer valid; `reason` says why."""


@frozen
class Put:
    """Store a record if `expected` is the slot's last sequence; 0 means no record."""

    attempt: int
    expected: int
    token: int
    final: bool


@frozen
class Look:
    """Request the slot's record from the leader."""


@frozen
class Drop:
    """Delete the record with this sequence."""

    seq: int


Action = Put | Look | Drop


class LeaseEngine:
    """The state machine of one slot and one tenure; see the module docstring."""

    def __init__(self, terms: Terms, tenure: str, now: float) -> None:
        self.terms: Final = terms
        self.tenure: Final = tenure
        self.phase = Phase.ASKING
        self.token = 0
        """The fencing token: the sequence with which the slot was acquired; 0 before that."""
        self.until = -math.inf
        """When the lease becomes invalid, unless it is renewed before."""
        self.holder: SlotRecord | None = None
        """The record of the current holder when the slot was refused, if there is one."""
        self.reason = ""
        """Why the lease was lost, or the last problem."""
        self.seq = 0
        """The sequence of our record if it is known to be the slot's last; 0 for none."""
        self._attempt = 0
        self._sent: dict[int, float] = {}
        self._look = False
        self._empty_looks = 0
        self._pauses = 0
        self._backoff: Final = Backoff(
            _FIRST_PAUSE, min(_LONGEST_PAUSE, max(terms.interval, _FIRST_PAUSE))
        )
        self._again_at = now
        self._final = False
        self._expired_at = math.inf

    # ---- state

    def believes(self, now: float) -> bool:
        """Return whether it is certain that no other client can have the slot now."""
        return self.phase is Phase.HELD and now < self.until

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing left to do."""
        return self.phase in {Phase.REFUSED, Phase.LEFT, Phase.LOST}

    @property
    def may_be_stored(self) -> bool:
        """Return whether a record may be on the server although the slot is not held."""
        return self.phase is Phase.ASKING and self._attempt > 0

    def wake_at(self) -> float:
        """Return when to poll again; infinity if there is no timer."""
        if self.is_over:
            return math.inf
        return min(self._again_at, self.until) if self.phase is Phase.HELD else self._again_at

    def patience(self, now: float) -> float:
        """Return how many seconds to wait for the response to an action that starts now."""
        if self.phase is Phase.HELD:
            return max(0.0, min(self.until - now, max(self.terms.interval / 2, _LONGEST_PAUSE)))
        return min(max(self.terms.belief / 2, _LONGEST_PAUSE), _LONGEST_PATIENCE)

    def poll(self, now: float) -> Action | None:
        """Return the action to take now; a publish counts as sent at `now`."""
        self._lapse(now)
        if self.is_over or now < self._again_at:
            return None
        if self._look:
            return Look()
        if self.phase is Phase.LEAVING and not self._final:
            return Drop(self.seq)
        self._attempt += 1
        self._sent[self._attempt] = now
        return Put(self._attempt, self.seq, self.token, self._final)

    # ---- events

    def stored(self, attempt: int, seq: int, now: float) -> None:
        """Handle the server's confirmation of a record."""
        self._lapse(now)
        self._own(attempt, seq, self.token or seq, now)

    def refused(self, now: float) -> None:
        """Handle a refusal: the slot's last sequence was not the expected one."""
        self._lapse(now)
        self._look, self._again_at = True, now

    def unanswered(self, reason: str, now: float, *, look: bool = False) -> None:
        """Handle an unknown outcome, or a temporary failure of the server."""
        self.reason = reason
        self._lapse(now)
        self._look = self._look or look
        self._wait(now)

    def looked(self, record: SlotRecord | None, now: float) -> None:
        """Handle the slot's record, or None, as returned by the leader."""
        self._lapse(now)
        self._look = False
        if record is not None and record.tenure == self.tenure:
            self._recognise(record, now)
        elif record is not None and record.seq < self.seq:
            self._wait(now)  # older than our record: an outdated look-up
        elif self.phase is Phase.HELD:
            self._lose("its record was removed" if record is None else f"{record.owner} has it now")
        elif self.phase is Phase.LEAVING:
            self._end("its record was removed")
        elif self.phase is Phase.ASKING:
            self._make_room(record, now)

    def dropped(self, found: bool, now: float) -> None:
        """Handle the deletion of the record; `found` is False if it did not exist."""
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
        """Release the slot; `final` stores a last record instead of deleting it."""
        self._lapse(now)
        if self.is_over:
            return
        if self.phase is Phase.ASKING and not self._attempt:
            self.phase = Phase.LEFT
            return
        # Even without a confirmed record, there may be one.
        self._look = self._look or not self.seq
        confirmed = self.until + self.terms.margin
        self._expired_at = max([confirmed, *(at + self.terms.ttl for at in self._sent.values())])
        self.phase, self._final, self._again_at = Phase.LEAVING, final, now

    def fail(self, reason: str) -> None:
        """Handle a permanent failure, such as a closed connection."""
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
        """End without a record: as intended, unless a final record was to stay."""
        if self._final:
            self._lose(reason)
        else:
            self.phase = Phase.LEFT

    def _wait(self, now: float) -> None:
        if self.phase is Phase.LEAVING and now >= self._expired_at:
            self._end(f"its record expired ({self.reason})")
        self._pauses += 1
        self._again_at = now + self._backoff.pause(self._pauses)

    def _recognise(self, record: SlotRecord, now: float) -> None:
        """Handle a record of our tenure, possibly one whose confirmation was lost."""
        if record.seq > self.seq and record.attempt in self._sent:
            self._own(record.attempt, record.seq, record.token, now)
        else:
            self._wait(now)  # nothing new: an outdated look-up, or an attempt is still in flight

    def _own(self, attempt: int, seq: int, token: int, now: float) -> None:
        """Update the state: the last record of the slot is one that this client wrote."""
        sent = self._sent[attempt]
        self.seq, self.token = seq, token
        self._sent = {each: at for each, at in self._sent.items() if each > attempt}
        self._pauses = 0
        if self.phase is Phase.LEAVING:
            if self._final and attempt == self._attempt:
                self.phase = Phase.LEFT
            self._again_at = now
        elif self.phase in {Phase.ASKING, Phase.HELD}:
            self.until = max(self.until, sent + self.terms.belief)
            self.reason = ""
            # A late confirmation does not make the lease valid, but causes an immediate renewal.
            if now < self.until:
                self.phase = Phase.HELD
                self._again_at = sent + self.terms.interval
            else:
                self._again_at = now

    def _make_room(self, record: SlotRecord | None, now: float) -> None:
        self.seq = self.token = 0
        if record is None and self._empty_looks < _MOST_EMPTY_LOOKS:
            self._empty_looks += 1
            self._again_at = now
        else:
            self.phase, self.holder = Phase.REFUSED, record
