"""The acquisition of a slot: at once, or when the current holder releases it or dies.

A slot is a subject that has one record, written by its holder, or none. A holder that releases a
slot sends a message to the waiters. This message is not stored, so it may get lost. Therefore
waiters also repeat their request after pauses that double, and when the holder's record must have
expired.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Final
from zlib import crc32

from js_async.coordination.lease import Lease
from js_async.coordination.slot import Place, Slot, Slots, may_pass
from js_async.runtime.concurrency import Signal
from twinstream.core.coordination.lease_engine import LeaseEngine, Terms
from twinstream.core.coordination.lease_record import SlotRecord
from twinstream.core.coordination.waiting_pauses import pause_after, pause_until_expiry
from twinstream.core.deadline import Deadline, is_cut_short, monotonic, unsleeping
from twinstream.errors import RequestTimeout, TwinstreamError

__all__ = ["Asking", "NumberedAcquisition", "SlotAcquisition"]


class Asking(ABC):
    """One acquisition of a slot with a kind (`lock`, `semaphore` ...) and a name."""

    def __init__(self, place: Place, kind: str, name: str, terms: Terms, note: str) -> None:
        self.place: Final = place
        self.kind: Final = kind
        self.name: Final = name
        self.slots: Final = Slots(place)
        self.tenure: Final = place.api.transport.tokens.name()
        self.holder: SlotRecord | None = None
        """The record of the holder that blocked the last attempt, or None."""
        self._terms: Final = terms
        self._note: Final = note
        self._clock: Final = ServerClock(place)
        self._pauses = 0
        self._freed: Signal | None = None
        self._given_up = False
        self._last_error: TwinstreamError | None = None

    @abstractmethod
    async def attempt(self, deadline: Deadline) -> Slot | None:
        """Try once to acquire a slot, and return the slot, or None if no slot is free.

        Without a free slot, `holder` is set to the record of the holder to wait for.
        """

    def new_slot(self, number: int | None) -> Slot:
        """Return a slot that this acquisition can request.

        `number` is None for kinds that have one slot for each name.
        """
        engine = LeaseEngine(self._terms, self.tenure, unsleeping())
        return Slot(self.place, self.kind, self.name, number, engine, self._note)

    async def ask(self, slot: Slot, deadline: Deadline) -> bool:
        """Request a slot; return whether it was granted.

        If the outcome is unknown, the server may have stored the record. The record is then removed
        in the background.
        """
        is_granted = False
        try:
            is_granted = await slot.ask(deadline)
        finally:
            # The outcome is also unknown if the request was cancelled.
            if not is_granted and slot.engine.may_be_stored:
                Lease(slot)._abandon()
        return is_granted

    async def wait(self, deadline: Deadline) -> Slot:
        """Wait until a slot is granted, and return it.

        While the server cannot be reached, the call waits as for a slot in use. At the deadline,
        the call raises `RequestTimeout`. This error names the current holder.
        """
        slot = await self._try(deadline)
        if slot is not None:
            return slot
        transport = self.place.api.transport
        subject = self.place.subjects.freed(self.kind, self.name)
        box = await transport.open_mailbox(subject.encode())
        self._freed = box.signal
        try:
            while not self._given_up and not deadline.expired():
                # The subscription exists before this attempt, so a later release is not missed.
                box.take_all()
                slot = await self._try(deadline)
                if slot is not None:
                    return slot
                pause = Deadline.after(await self._wait_for(deadline))
                if not self._given_up:
                    await transport.wait(box.signal, deadline.earlier(pause.at))
        finally:
            self._freed = None
            await transport.close_mailbox(box)
        what = "the acquisition was cancelled" if self._given_up else "not free in time"
        raise RequestTimeout(
            f"{self.kind} {self.name}: {what}{self._describe_holder()}"
        ) from self._last_error

    async def _try(self, deadline: Deadline) -> Slot | None:
        """Make one attempt. Return the slot, or None if another attempt may succeed.

        Raises errors that waiting cannot resolve.
        """
        is_short = deadline.remaining() < self.place.api.timeout
        try:
            slot = await self.attempt(deadline)
        except TwinstreamError as error:
            if not may_pass(error):
                raise
            # The deadline cut this attempt short, so its timeout explains less than the holder or
            # the error that an earlier attempt has found.
            is_known = self.holder is not None or self._last_error is not None
            if not (is_known and is_short and is_cut_short(error, deadline)):
                self.holder, self._last_error = None, error
            return None
        self._last_error = None
        return slot

    def give_up(self) -> None:
        """Cancel `wait`. Another task or thread calls this."""
        self._given_up = True
        freed = self._freed
        if freed is not None:
            freed.set()

    async def _wait_for(self, deadline: Deadline) -> float:
        """Return how many seconds to wait for the message of a release before the next attempt."""
        self._pauses += 1
        pause = pause_after(self._pauses)
        holder = self.holder
        if holder is None or holder.ttl is None:
            return pause
        try:
            since = await self._clock.seconds_since(holder.time, self.place.patience(deadline))
        except TwinstreamError as error:
            if not may_pass(error):
                raise
            return pause
        return pause_until_expiry(pause, holder.ttl, since)

    def _describe_holder(self) -> str:
        if self._last_error is not None:
            return f" ({self._last_error})"
        holder = self.holder
        if holder is None:
            return ""
        note = f", {holder.note}" if holder.note else ""
        return f": held by {holder.owner or 'a foreign message'} (token {holder.token}{note})"


class ServerClock:
    """The server's time, which is requested once and then continued by the local monotonic clock.

    The local wall clock is not used, because it may be wrong.
    """

    def __init__(self, place: Place) -> None:
        self._place: Final = place
        self._shown: datetime | None = None
        self._read_at = 0.0

    async def seconds_since(self, time: datetime, deadline: Deadline) -> float:
        """Return the seconds from `time`, a time of the server's clock, until now."""
        if self._shown is None:
            place = self._place
            self._shown = (await place.api.stream_info(place.stream, deadline)).ts or time
            self._read_at = monotonic()
        return (self._shown - time).total_seconds() + monotonic() - self._read_at


class SlotAcquisition(Asking):
    """An acquisition of the single slot of a name."""

    def __init__(self, place: Place, kind: str, name: str, terms: Terms, note: str) -> None:
        super().__init__(place, kind, name, terms, note)
        self._slot: Final = self.new_slot(None)

    async def attempt(self, deadline: Deadline) -> Slot | None:
        """Request the slot once; see `Asking.attempt`."""
        if await self.ask(self._slot, deadline):
            return self._slot
        self.holder = self._slot.engine.holder
        return None

    def give_up(self) -> None:
        """Cancel `wait`, also during a request. Another task or thread calls this."""
        self._slot.given_up = True
        super().give_up()


class NumberedAcquisition(Asking):
    """An acquisition of any of the slots 1 to `count` of a name."""

    def __init__(
        self, place: Place, kind: str, name: str, count: int, terms: Terms, note: str
    ) -> None:
        super().__init__(place, kind, name, terms, note)
        self._count: Final = count
        # Begin with a random number, so that concurrent acquisitions request different slots.
        self._start: Final = crc32(self.tenure.encode())
        self._filter: Final = place.subjects.slots(kind, name)

    async def attempt(self, deadline: Deadline) -> Slot | None:
        """Request the free slots one after the other; see `Asking.attempt`."""
        for number in await self._free(deadline):
            slot = self.new_slot(number)
            if await self.ask(slot, deadline):
                return slot
        self.holder = await self.slots.first(self._filter, 0, self.place.patience(deadline))
        return None

    async def _free(self, deadline: Deadline) -> list[int]:
        body = {"subjects_filter": self._filter}
        patience = self.place.patience(deadline)
        info = await self.place.api.stream_info(self.place.stream, patience, body)
        taken = {self.place.subjects.parts(each)[2] for each in info.state.subjects or ()}
        numbers = ((self._start + each) % self._count + 1 for each in range(self._count))
        return [number for number in numbers if number not in taken]
