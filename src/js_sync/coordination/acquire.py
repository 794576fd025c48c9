# Generated from src/js_async/coordination/acquire.py by codegen/twin.py. Edit that file instead.
"""Asking for a slot until it is given: at once, or when somebody leaves or dies.

Waiters listen for the word of who releases. That word is sent once and not stored, so it may get
lost; therefore they also ask when the record that is in the way must have run out, and at pauses
that double before that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Final
from zlib import crc32

from twinstream.core.deadline import Deadline, monotonic, unsleeping
from twinstream.errors import RequestTimeout, TwinstreamError
from twinstream.core.coordination.lease_engine import LeaseEngine, Terms
from twinstream.core.coordination.lease_record import SlotRecord
from js_sync.coordination.slot import Place, Slot, Slots, passes
from js_sync.client.transport import Box
from js_sync.coordination.lease import Lease

__all__ = ["Asking", "NumberedAsking", "SlotAsking"]

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 10.0
# Servers remove what has run out at once, or up to some 0.3 s later (2.11 to 2.15).
_REMOVAL: Final = 0.02
_OVERDUE: Final = 0.1


class Asking(ABC):
    """One wish for a slot of a kind and name."""

    def __init__(self, place: Place, kind: str, name: str, terms: Terms, note: str) -> None:
        self.place: Final = place
        self.kind: Final = kind
        self.name: Final = name
        self.slots: Final = Slots(place)
        self.tenure: Final = place.api.transport.tokens.name()
        self.holder: SlotRecord | None = None
        """Who was in the way when it was tried last."""
        self._terms: Final = terms
        self._note: Final = note
        self._clock: Final = ServerClock(place)
        self._pause = _FIRST_PAUSE
        self._box: Box | None = None
        self._given_up = False
        self._trouble: TwinstreamError | None = None

    @abstractmethod
    def attempt(self, deadline: Deadline) -> Slot | None:
        """Ask once; None when none was given, with `holder` set to who leaves first."""

    def new_slot(self, number: int | None) -> Slot:
        """Return a slot that is not asked for yet."""
        engine = LeaseEngine(self._terms, self.tenure, unsleeping())
        return Slot(self.place, self.kind, self.name, number, engine, self._note)

    def ask(self, slot: Slot, deadline: Deadline) -> bool:
        """Ask for one slot; a record that may be stored though it was not confirmed is removed."""
        given = False
        try:
            given = slot.ask(deadline)
        finally:
            # Not for one who was refused: also where the wish was given up meanwhile.
            if not given and slot.engine.may_be_stored:
                Lease(slot)._abandon()
        return given

    def wait(self, deadline: Deadline) -> Slot:
        """Ask until a slot is given; raises `RequestTimeout` with who is in the way.

        While nobody can be reached it waits, as for a slot that is taken.
        """
        given = self._try(deadline)
        if given is not None:
            return given
        transport = self.place.api.transport
        subject = self.place.subjects.freed(self.kind, self.name)
        self._box = box = transport.open_mailbox(subject.encode())
        try:
            while not self._given_up and not deadline.expired():
                # Asked after listening, so that no release is missed in between.
                box.take_all()
                given = self._try(deadline)
                if given is not None:
                    return given
                pause = Deadline.after(self._wait_for(deadline))
                if not self._given_up:
                    transport.wait(box.signal, deadline.earlier(pause.at))
        finally:
            self._box = None
            transport.close_mailbox(box)
        what = "the wish was given up" if self._given_up else "not free in time"
        raise RequestTimeout(
            f"{self.kind} {self.name}: {what}{self._in_the_way()}"
        ) from self._trouble

    def _try(self, deadline: Deadline) -> Slot | None:
        try:
            given = self.attempt(deadline)
        except TwinstreamError as error:
            if not passes(error):
                raise
            self.holder, self._trouble = None, error
            return None
        self._trouble = None
        return given

    def patience(self, deadline: Deadline) -> Deadline:
        """Return the deadline of one request on the way to a slot."""
        return self.place.api.deadline().earlier(deadline.at)

    def give_up(self) -> None:
        """End a wait, from elsewhere."""
        self._given_up = True
        box = self._box
        if box is not None:
            box.signal.set()

    def _wait_for(self, deadline: Deadline) -> float:
        """Return how many seconds to wait for the word of a release."""
        pause = self._pause
        self._pause = min(pause * 2, _LONGEST_PAUSE)
        holder = self.holder
        if holder is None or holder.ttl is None:
            return pause
        try:
            since = self._clock.seconds_since(holder.time, self.patience(deadline))
        except TwinstreamError as error:
            if not passes(error):
                raise
            return pause
        left = holder.ttl + _REMOVAL - since
        return min(pause, left) if left > 0 else _OVERDUE

    def _in_the_way(self) -> str:
        if self._trouble is not None:
            return f" ({self._trouble})"
        holder = self.holder
        if holder is None:
            return ""
        note = f", {holder.note}" if holder.note else ""
        return f": held by {holder.owner or 'a foreign message'} (token {holder.token}{note})"


class ServerClock:
    """Tells how long ago something was by the server's clock, without trusting our own."""

    def __init__(self, place: Place) -> None:
        self._place: Final = place
        self._shown: datetime | None = None
        self._read_at = 0.0

    def seconds_since(self, time: datetime, deadline: Deadline) -> float:
        """Return the seconds from `time` until now."""
        if self._shown is None:
            place = self._place
            self._shown = (place.api.stream_info(place.stream, deadline)).ts or time
            self._read_at = monotonic()
        return (self._shown - time).total_seconds() + monotonic() - self._read_at


class SlotAsking(Asking):
    """Asks for the one slot of a name."""

    def __init__(self, place: Place, kind: str, name: str, terms: Terms, note: str) -> None:
        super().__init__(place, kind, name, terms, note)
        self._slot: Final = self.new_slot(None)

    def attempt(self, deadline: Deadline) -> Slot | None:
        """Ask for the slot."""
        if self.ask(self._slot, deadline):
            return self._slot
        self.holder = self._slot.engine.holder
        return None

    def give_up(self) -> None:
        """End a wait, from elsewhere, also while it asks."""
        self._slot.given_up = True
        super().give_up()


class NumberedAsking(Asking):
    """Asks for any of the slots 1 to `count` of a name."""

    def __init__(
        self, place: Place, kind: str, name: str, count: int, terms: Terms, note: str
    ) -> None:
        super().__init__(place, kind, name, terms, note)
        self._count: Final = count
        # Everybody begins elsewhere, so that those who ask at once do not all want the same.
        self._start: Final = crc32(self.tenure.encode())
        self._filter: Final = place.subjects.slots(kind, name)

    def attempt(self, deadline: Deadline) -> Slot | None:
        """Ask for the free slots, one after the other."""
        for number in self._free(deadline):
            slot = self.new_slot(number)
            if self.ask(slot, deadline):
                return slot
        self.holder = self.slots.first(self._filter, 0, self.patience(deadline))
        return None

    def _free(self, deadline: Deadline) -> list[int]:
        body = {"subjects_filter": self._filter}
        patience = self.patience(deadline)
        info = self.place.api.stream_info(self.place.stream, patience, body)
        taken = {self.place.subjects.parts(each)[2] for each in info.state.subjects or ()}
        numbers = ((self._start + each) % self._count + 1 for each in range(self._count))
        return [number for number in numbers if number not in taken]
