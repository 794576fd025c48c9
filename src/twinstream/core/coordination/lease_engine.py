"""Taking, keeping and leaving one slot: what to do next, and until when to believe in it.

Theory of operation. A slot is a subject that holds one record or none; the server stores a publish
only where the last sequence of the subject is the expected one. To take a slot is to publish with
nothing expected, to keep it is to publish anew with the own last sequence expected, to leave it is
to remove that sequence. Each record has a TTL, and the server frees a slot when its clock is
that far beyond the time at which it stored the record, never before (tried on 2.11 to 2.15, also
over restarts, kills and pauses).

So a holder that sent its record at S on its own clock may believe until S + TTL - margin: the
server stored the record after S. The margin is there for what clocks differ in. A renewal counts
from its own sending. Once a belief ran out the lease is lost for good, also if a late answer
shows that the server still has the record: somebody may have been told.

An answer that never came leaves two worlds. The next attempt decides: where the lost one was not
stored, it is, otherwise it is refused and the record is looked at. A record of our own tenure
tells which attempt it was, and that attempt's sending time is what counts. Looks may be stale (a
leader that was deposed may answer), so a look never moves anything back.

The engine is told what happened (`stored`, `refused`, `unanswered`, `looked`, `dropped`) and says
what to do (`poll`) and when to ask again (`wake_at`). One action is under way at a time; times are
seconds of one monotonic clock. Nothing here waits, sends or draws.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Final

from attrs import frozen

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadArgument
from twinstream.core.coordination.lease_record import SlotRecord

__all__ = ["FOREVER", "Action", "Drop", "LeaseEngine", "Look", "Phase", "Put", "Terms"]

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
# A request that was lost, while leaders change say, is repeated after this long at the latest.
_LONGEST_PATIENCE: Final = 5.0
# Empty slots that refuse a record: somebody else takes and leaves it faster than we ask.
_MOST_EMPTY_LOOKS: Final = 3
_SHORTEST_TTL: Final = 2


@frozen
class Terms:
    """How long a record is valid on the server, and how much earlier its holder stops to believe.

    Both in seconds; an infinite `ttl` is a record that stays until it is removed.
    """

    ttl: float
    margin: float

    @classmethod
    def of(cls, ttl: Seconds, margin: Seconds | None) -> Terms:
        """Return checked terms; the margin is a quarter of the TTL, 1 s at most, unless given."""
        whole = finite_seconds(ttl, "ttl")
        if whole < _SHORTEST_TTL or whole != int(whole):
            raise BadArgument(
                f"ttl must be whole seconds from {_SHORTEST_TTL} up, got {ttl!r}:"
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
        """Return the terms of records that nobody renews: they stay for a period."""
        whole = finite_seconds(per, what)
        if whole < 1 or whole != int(whole):
            raise BadArgument(
                f"{what} must be whole seconds from 1 up, got {per!r}: the server counts in seconds"
            )
        return cls(whole, 0.0)

    @property
    def belief(self) -> float:
        """Seconds from the sending of a record for which its holder believes in it."""
        return self.ttl - self.margin

    @property
    def interval(self) -> float:
        """Seconds between two renewals: two of three may fail."""
        return self.belief / 3


FOREVER: Final = Terms(math.inf, 0.0)


class Phase(Enum):
    """Where a lease stands."""

    ASKING = auto()
    """It wants the slot."""
    REFUSED = auto()
    """Somebody else has the slot; `ask_again` asks again."""
    HELD = auto()
    """It has the slot, as far as `believes` says so."""
    LEAVING = auto()
    """It gives the slot up, and believes no more."""
    LEFT = auto()
    """The slot is given up, or holds the final record."""
    LOST = auto()
    """It had the slot and does not believe any more; `reason` says why."""


@frozen
class Put:
    """Store a record of the tenure where `expected` is the slot's last sequence; 0 is none."""

    attempt: int
    expected: int
    token: int
    final: bool


@frozen
class Look:
    """Ask the leader for the slot's record."""


@frozen
class Drop:
    """Remove the record with this sequence."""

    seq: int


Action = Put | Look | Drop


class LeaseEngine:
    """Decides for one slot and one tenure; see the module's text."""

    def __init__(self, terms: Terms, tenure: str, now: float) -> None:
        self.terms: Final = terms
        self.tenure: Final = tenure
        self.phase = Phase.ASKING
        self.token = 0
        """The fencing token: the sequence with which the slot was got; 0 before."""
        self.until = -math.inf
        """When the belief ends, unless it is renewed before."""
        self.holder: SlotRecord | None = None
        """Who had the slot when it was refused, if anybody had."""
        self.reason = ""
        """Why it was lost, or what went wrong last."""
        self.seq = 0
        """The sequence of the own record that is known to be the slot's last; 0 for none."""
        self._attempt = 0
        self._sent: dict[int, float] = {}
        self._look = False
        self._empty_looks = 0
        self._pause = _FIRST_PAUSE
        self._again_at = now
        self._final = False
        self._gone_at = math.inf

    # ---- what it says

    def believes(self, now: float) -> bool:
        """Tell whether nobody else can have the slot now."""
        return self.phase is Phase.HELD and now < self.until

    @property
    def is_over(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.phase in {Phase.REFUSED, Phase.LEFT, Phase.LOST}

    @property
    def may_be_stored(self) -> bool:
        """Tell whether a record may be on the server though the slot is not held."""
        return self.phase is Phase.ASKING and self._attempt > 0

    def wake_at(self) -> float:
        """Return when to poll again; infinity when nothing will be due by itself."""
        if self.is_over:
            return math.inf
        return min(self._again_at, self.until) if self.phase is Phase.HELD else self._again_at

    def patience(self, now: float) -> float:
        """Return how many seconds to wait for the answer to an action that starts now."""
        if self.phase is Phase.HELD:
            return max(0.0, min(self.until - now, max(self.terms.interval / 2, _LONGEST_PAUSE)))
        return min(max(self.terms.belief / 2, _LONGEST_PAUSE), _LONGEST_PATIENCE)

    def poll(self, now: float) -> Action | None:
        """Return what to do now; a publish counts as sent at `now`."""
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

    # ---- what it is told

    def stored(self, attempt: int, seq: int, now: float) -> None:
        """Hear that the server confirmed a record."""
        self._lapse(now)
        self._own(attempt, seq, self.token or seq, now)

    def refused(self, now: float) -> None:
        """Hear that the slot's last sequence was not the expected one."""
        self._lapse(now)
        self._look, self._again_at = True, now

    def unanswered(self, reason: str, now: float, *, look: bool = False) -> None:
        """Hear that nobody knows whether the server acted, or that it could not for a while."""
        self.reason = reason
        self._lapse(now)
        self._look = self._look or look
        self._wait(now)

    def looked(self, record: SlotRecord | None, now: float) -> None:
        """Hear from the leader what the slot holds."""
        self._lapse(now)
        self._look = False
        if record is not None and record.tenure == self.tenure:
            self._recognise(record, now)
        elif record is not None and record.seq < self.seq:
            self._wait(now)  # older than what we know: a stale look
        elif self.phase is Phase.HELD:
            self._lose("its record is gone" if record is None else f"{record.owner} has it now")
        elif self.phase is Phase.LEAVING:
            self._end("its record is gone")
        elif self.phase is Phase.ASKING:
            self._make_room(record, now)

    def dropped(self, found: bool, now: float) -> None:
        """Hear that the record was removed, or was not there to be removed."""
        if found:
            self.phase = Phase.LEFT
        else:
            self._look, self._again_at = True, now

    def ask_again(self, now: float) -> None:
        """Ask for the slot once more, after a refusal."""
        if self.phase is Phase.REFUSED:
            self.phase = Phase.ASKING
            self.holder, self._empty_looks, self._again_at = None, 0, now

    def leave(self, now: float, *, final: bool = False) -> None:
        """Give the slot up; `final` leaves a last record there instead of none."""
        self._lapse(now)
        if self.is_over:
            return
        if self.phase is Phase.ASKING and not self._attempt:
            self.phase = Phase.LEFT
            return
        # Without a confirmed record, one may be there all the same.
        self._look = self._look or not self.seq
        confirmed = self.until + self.terms.margin
        self._gone_at = max([confirmed, *(at + self.terms.ttl for at in self._sent.values())])
        self.phase, self._final, self._again_at = Phase.LEAVING, final, now

    def fail(self, reason: str) -> None:
        """Hear that nothing can be done any more, the connection is closed say."""
        if not self.is_over:
            self._lose(reason)

    # ---- inside

    def _lapse(self, now: float) -> None:
        if self.phase is Phase.HELD and now >= self.until:
            because = f" ({self.reason})" if self.reason else ""
            self._lose(f"it was not renewed in time{because}")

    def _lose(self, reason: str) -> None:
        self.phase, self.reason = Phase.LOST, reason

    def _end(self, reason: str) -> None:
        """End without a record: that was the aim, unless one was to stay."""
        if self._final:
            self._lose(reason)
        else:
            self.phase = Phase.LEFT

    def _wait(self, now: float) -> None:
        if self.phase is Phase.LEAVING and now >= self._gone_at:
            self._end(f"its record ran out ({self.reason})")
        self._again_at = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE, max(self.terms.interval, _FIRST_PAUSE))

    def _recognise(self, record: SlotRecord, now: float) -> None:
        """Take in a record of ours; perhaps one whose confirmation never came."""
        if record.seq > self.seq and record.attempt in self._sent:
            self._own(record.attempt, record.seq, record.token, now)
        else:
            self._wait(now)  # no news: a stale look, or an attempt that is still on its way

    def _own(self, attempt: int, seq: int, token: int, now: float) -> None:
        """Take it that a record of ours is the slot's last."""
        sent = self._sent[attempt]
        self.seq, self.token = seq, token
        self._sent = {each: at for each, at in self._sent.items() if each > attempt}
        self._pause = _FIRST_PAUSE
        if self.phase is Phase.LEAVING:
            if self._final and attempt == self._attempt:
                self.phase = Phase.LEFT
            self._again_at = now
        elif self.phase in {Phase.ASKING, Phase.HELD}:
            self.until = max(self.until, sent + self.terms.belief)
            self.reason = ""
            # A confirmation that came too late is no reason to believe, but one to renew at once.
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
