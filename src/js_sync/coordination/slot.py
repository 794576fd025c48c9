# Generated from src/js_async/coordination/slot.py by codegen/twin.py. Edit that file instead.
"""One slot of a coordination stream: carrying out what a lease decides."""

from __future__ import annotations

import math
from typing import Final

from attrs import frozen

from twinstream.core.coordination.coordination import CoordinationSubjects
from twinstream.core.deadline import Deadline, unsleeping
from twinstream.core.read.direct_get import from_leader
from twinstream.errors import (
    BadAnswer,
    ConnectionClosed,
    ConnectionLost,
    JetStreamError,
    MessageNotFound,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.core.coordination.lease_engine import Action, Drop, LeaseEngine, Look, Phase, Put
from twinstream.core.coordination.lease_record import HELD, LeaseRecord, SlotRecord, read_slot
from twinstream.core.log.logger import Log
from twinstream.core.log.events import WillRetry
from twinstream.core.publish.request import PublishRequest
from twinstream.models import StreamMessageDeleteResponse, StreamMessageGetResponse
from js_sync.api.api import Api
from js_sync.runtime.concurrency import Stream as Generated
from js_sync.runtime.concurrency import sleep
from js_sync.api.write_attempt import write

__all__ = ["Place", "Slot", "Slots", "passes"]

# Classes of refusals that pass: not now (503), too much (429), in conflict with another (409).
_PASSING: Final = {409, 429, 503}


@frozen
class Place:
    """What a coordination stream is: its name, its subjects, and the way there."""

    api: Api
    stream: str
    subjects: CoordinationSubjects
    owner: str
    """What this program is called in records."""
    max_msg_size: int | None = None
    """The most bytes of a message with its headers; None where the stream sets no limit."""
    domain: str | None = None
    """The domain that the stream is in; None where its server names none."""


class Slots:
    """Reads and removes records of a coordination stream, always by its leader."""

    def __init__(self, place: Place) -> None:
        self.place: Final = place

    def look(self, subject: str, deadline: Deadline | None = None) -> SlotRecord | None:
        """Return the record of a slot, or None."""
        return self._get({"last_by_subj": subject}, deadline)

    def first(
        self, filter_: str, start: int = 0, deadline: Deadline | None = None
    ) -> SlotRecord | None:
        """Return the oldest record from a sequence up in the slots of a filter, or None."""
        return self._get({"seq": start, "next_by_subj": filter_}, deadline)

    def _get(self, body: dict[str, object], deadline: Deadline | None) -> SlotRecord | None:
        api = self.place.api
        subject = api.subjects.message("GET", self.place.stream)
        try:
            answer = api.call(subject, body, StreamMessageGetResponse, deadline)
        except MessageNotFound:
            return None
        if answer.message is None:
            raise BadAnswer(f"{subject}: the answer holds no message")
        return read_slot(from_leader(answer.message, self.place.stream))

    def all(self, filter_: str) -> Generated[SlotRecord]:
        """Iterate over the records of a filter, the oldest first."""
        start = 0
        while True:
            record = self.first(filter_, start)
            if record is None:
                return
            yield record
            start = record.seq + 1

    def drop(self, seq: int, deadline: Deadline | None = None) -> bool:
        """Remove a record; tell whether it was there."""
        api = self.place.api
        subject = api.subjects.message("DELETE", self.place.stream)
        body = {"seq": seq, "no_erase": True}
        try:
            api.call(subject, body, StreamMessageDeleteResponse, deadline)
        except MessageNotFound:
            return False
        return True

    def tell_freed(self, kind: str, name: str) -> None:
        """Wake those who wait for a slot, as far as they can be reached now."""
        subject = self.place.subjects.freed(kind, name)
        self.place.api.transport.send(subject.encode(), b"", b"", b"")


class Slot:
    """One slot, one lease. `ask` gets it; `carry_out` does one thing that the lease decided."""

    def __init__(
        self,
        place: Place,
        kind: str,
        name: str,
        number: int | None,
        engine: LeaseEngine,
        note: str,
    ) -> None:
        self.kind: Final = kind
        self.name: Final = name
        self.number: Final = number
        self.subject: Final = place.subjects.slot(kind, name, number)
        self.engine: Final = engine
        self.slots: Final = Slots(place)
        self.final: LeaseRecord | None = None
        """State, note and data of the record that stays, where one does."""
        self.final_ttl: float | None = None
        self.given_up = False
        """Whether nobody wants it any more; ends an `ask`."""
        self._place: Final = place
        self._log: Final = Log("coordination")
        self._note: Final = note
        self._ttl: Final = engine.terms.ttl if math.isfinite(engine.terms.ttl) else None

    def deadline(self, patience: float) -> Deadline:
        """Return the deadline of one request: `patience` seconds, or the default if sooner."""
        return self._place.api.deadline().earlier(Deadline.after(patience).at)

    def ask(self, deadline: Deadline) -> bool:
        """Ask for the slot until the server's word is known; tell whether it was given.

        Raises `RequestTimeout` when it is not known at the deadline, and what waiting cannot mend.
        """
        engine = self.engine
        engine.ask_again(unsleeping())
        while engine.phase is Phase.ASKING and not self.given_up:
            if deadline.expired():
                raise RequestTimeout(
                    f"{self.subject}: no answer in time ({engine.reason or 'yet'})"
                )
            now = unsleeping()
            action = engine.poll(now)
            if action is None:
                sleep(min(engine.wake_at() - now, deadline.remaining()))
            else:
                patience = min(deadline.remaining(), engine.patience(now))
                self.carry_out(action, self.deadline(patience))
        return engine.phase is Phase.HELD

    def carry_out(self, action: Action, deadline: Deadline) -> None:
        """Do what the lease decided and tell it what came of it."""
        engine = self.engine
        try:
            match action:
                case Put():
                    self._put(action, deadline)
                case Look():
                    record = self.slots.look(self.subject, deadline)
                    engine.looked(record, unsleeping())
                case Drop():
                    found = self.slots.drop(action.seq, deadline)
                    engine.dropped(found, unsleeping())
        except WrongLastSequence:
            engine.refused(unsleeping())
        except ConnectionClosed as error:
            engine.fail(str(error))
            raise
        except TwinstreamError as error:
            if engine.phase is Phase.ASKING and not passes(error):
                raise
            # No stream behind the subject: the look asks the server itself, which knows why.
            look = isinstance(error, NoResponders)
            engine.unanswered(str(error), unsleeping(), look=look)
            if engine.phase is Phase.HELD:
                self._log(WillRetry(f"{self.name}: renewal of token {engine.token}", error))

    def _put(self, put: Put, deadline: Deadline) -> None:
        request = PublishRequest(
            subject=self.subject,
            data=self._record(put).encode(),
            expected_stream=self._place.stream,
            expected_last_subject_seq=put.expected,
            ttl=self.final_ttl if put.final else self._ttl,
        )
        # Asked once: the lease itself decides about repeating, and counts from each sending.
        place = self._place
        ack = write(place.api, request, place.stream, place.domain, deadline)
        self.engine.stored(put.attempt, ack.seq, unsleeping())

    def _record(self, put: Put) -> LeaseRecord:
        final = self.final if put.final else None
        return LeaseRecord(
            owner=self._place.owner,
            tenure=self.engine.tenure,
            attempt=put.attempt,
            token=put.token,
            state=HELD if final is None else final.state,
            note=self._note if final is None else final.note,
            data=b"" if final is None else final.data,
        )


def passes(error: TwinstreamError) -> bool:
    """Tell whether what failed may work later: nobody can be reached, or says not now."""
    if isinstance(error, JetStreamError):
        return error.code in _PASSING
    return isinstance(error, RequestTimeout | NoResponders | ConnectionLost)
