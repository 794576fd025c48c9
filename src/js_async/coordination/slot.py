"""The slots of a coordination stream.

A slot is a subject that has one record, written by the holder of the slot, or none.
"""

from __future__ import annotations

import math
from typing import Final

from js_async import JetStream, PublishRequest
from js_async.extension import SubjectWrites, api_of
from js_async.runtime.concurrency import Items, sleep
from twinstream.core.coordination.coordination import (
    CoordinationSubjects,
    check_coordination,
    coordination_config,
)
from twinstream.core.coordination.lease_engine import Action, Drop, LeaseEngine, Look, Phase, Put
from twinstream.core.coordination.lease_record import HELD, LeaseRecord, SlotRecord, read_slot
from twinstream.core.deadline import Deadline, Seconds, unsleeping
from twinstream.core.log.events import WillRetry
from twinstream.core.log.logger import Log
from twinstream.core.read.direct_get import from_leader
from twinstream.errors import (
    ConnectionClosed,
    InvalidResponse,
    MessageNotFound,
    NoLeader,
    NoResponders,
    RequestTimeout,
    StoreFailed,
    StreamExists,
    StreamNotFound,
    TwinstreamError,
    WrongLastSequence,
)
from twinstream.errors.transient import is_transient
from twinstream.models import (
    StreamCreateResponse,
    StreamInfo,
    StreamMessageDeleteResponse,
    StreamMessageGetResponse,
)

__all__ = ["Place", "Slot", "Slots", "may_pass"]

_SINCE: Final = (2, 11, 0)


class Place:
    """A coordination stream: its name, subjects and limits, and the API to access it.

    The first call of `ready` creates the stream if `create` is set, and checks its settings.
    """

    def __init__(
        self, jet: JetStream, stream_name: str, create: bool, replicas: int, owner: str
    ) -> None:
        self.api: Final = api_of(jet)
        self.stream: Final = stream_name
        self.subjects: Final = CoordinationSubjects(stream_name)
        self.writes: Final = SubjectWrites(self.api)
        self.owner: Final = owner
        """The name of this client in records."""
        self.max_msg_size: int | None = None
        """The maximum size of a message with headers in bytes; None if there is no limit."""
        self.domain: str | None = None
        """The JetStream domain of the stream; None if its server has no domain."""
        self._config: Final = (
            coordination_config(stream_name, replicas=replicas) if create else None
        )
        self._is_checked = False

    async def ready(self, deadline: Deadline | None = None) -> None:
        """Check the stream, unless an earlier call has.

        Raises `StreamNotFound`, `UnsuitableSettings`, or `Unsupported` for a server older than
        2.11.
        """
        if self._is_checked:
            return
        deadline = deadline or self.api.deadline()
        await self.api.transport.ready(deadline)
        self.api.require(_SINCE, "coordination (a time to live for each message)")
        # Callers that begin together may each check the stream, or create it, which is harmless.
        self._note(await self._open_stream(deadline))
        self._is_checked = True

    async def check(self, deadline: Deadline | None = None) -> None:
        """Check the settings of the stream. Raises `StreamNotFound` or `UnsuitableSettings`."""
        self._note(await self._existing(deadline or self.api.deadline()))

    def _note(self, info: StreamInfo) -> None:
        check_coordination(info.config, self.subjects)
        most = info.config.max_msg_size
        self.max_msg_size = most if most is not None and most > 0 else None
        self.domain = info.domain

    def patience(self, deadline: Deadline) -> Deadline:
        """Return the deadline of one request: the default of a call, or `deadline` if sooner."""
        return self.api.deadline().earlier(deadline.at)

    async def _existing(self, deadline: Deadline) -> StreamInfo:
        try:
            return await self.api.stream_info(self.stream, deadline)
        except StreamNotFound as error:
            error.add_advice(f"Coordination(jet, {self.stream!r}, create=True) creates it")
            raise

    async def _open_stream(self, deadline: Deadline) -> StreamInfo:
        """Return the info of the stream, which is created if that is asked for."""
        if self._config is None:
            return await self._existing(deadline)
        try:
            return await self.api.stream_info(self.stream, deadline)
        except StreamNotFound:
            pass
        subject = self.api.subjects.stream("CREATE", self.stream)
        try:
            await self.api.call(subject, self._config, StreamCreateResponse, deadline)
        except StreamExists:
            pass  # Another client has created the stream. The caller checks its settings.
        # Request the info again, because the response to a creation lacks the domain.
        return await self.api.stream_info(self.stream, deadline)


class Slots:
    """The records of a coordination stream. All requests go to the stream's leader."""

    def __init__(self, place: Place) -> None:
        self.place: Final = place

    async def look(self, subject: str, deadline: Deadline | None = None) -> SlotRecord | None:
        """Return the record of a slot, or None if the slot is free."""
        return await self._get({"last_by_subj": subject}, deadline)

    async def first(
        self, filter_: str, start: int = 0, deadline: Deadline | None = None
    ) -> SlotRecord | None:
        """Return the oldest record from sequence `start` on that matches a filter, or None."""
        return await self._get({"seq": start, "next_by_subj": filter_}, deadline)

    async def _get(self, body: dict[str, object], deadline: Deadline | None) -> SlotRecord | None:
        api = self.place.api
        subject = api.subjects.message("GET", self.place.stream)
        try:
            answer = await api.call(subject, body, StreamMessageGetResponse, deadline)
        except MessageNotFound:
            return None
        if answer.message is None:
            raise InvalidResponse(f"{subject}: the response contains no message")
        return read_slot(from_leader(answer.message, self.place.stream))

    async def all(
        self, filter_: str, deadline: Deadline | None = None, idle_timeout: Seconds | None = None
    ) -> Items[SlotRecord]:
        """Iterate over the records that match a filter, the oldest first.

        `deadline` is that of all requests together, `idle_timeout` that of each.
        """
        start = 0
        while True:
            record = await self.first(
                filter_, start, deadline or self.place.api.deadline(idle_timeout)
            )
            if record is None:
                return
            yield record
            start = record.seq + 1

    async def drop(self, seq: int, deadline: Deadline | None = None) -> bool:
        """Remove the record with sequence `seq`; return whether it existed."""
        api = self.place.api
        subject = api.subjects.message("DELETE", self.place.stream)
        body = {"seq": seq, "no_erase": True}
        try:
            await api.call(subject, body, StreamMessageDeleteResponse, deadline)
        except MessageNotFound:
            return False
        return True

    async def tell_freed(self, kind: str, name: str) -> None:
        """Send the message that wakes up connected clients that wait for a slot of this name."""
        subject = self.place.subjects.freed(kind, name)
        await self.place.api.transport.send(subject.encode(), b"", b"", b"")


class Slot:
    """One slot, with the lease engine that decides what to send for it.

    `ask` acquires the slot; `carry_out` performs one action of the engine.
    """

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
        """The record to store at the release of the slot, or None to remove the record then."""
        self.final_ttl: float | None = None
        """The time to live of `final` in seconds; None keeps it forever."""
        self.given_up = False
        """Whether the caller no longer wants the slot. `ask` ends then."""
        self._place: Final = place
        self._log: Final = Log("coordination")
        self._note: Final = note
        self._ttl: Final = engine.terms.ttl if math.isfinite(engine.terms.ttl) else None
        self.observers: Final = place.api.transport.observers

    def deadline(self, patience: float) -> Deadline:
        """Return the deadline of one request: `patience` seconds or, if sooner, the default."""
        return self._place.patience(Deadline.after(patience))

    async def ask(self, deadline: Deadline) -> bool:
        """Request the slot until the outcome is known, or until `given_up` is set.

        Return whether the slot was granted. Raises `RequestTimeout` if the outcome is unknown at
        the deadline, and errors that waiting cannot resolve.
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
                await sleep(min(engine.wake_at() - now, deadline.remaining()))
            else:
                patience = min(deadline.remaining(), engine.patience(now))
                await self.carry_out(action, self.deadline(patience))
        return engine.phase is Phase.HELD

    async def carry_out(self, action: Action, deadline: Deadline) -> None:
        """Perform an action of the engine and report the result to the engine."""
        engine = self.engine
        try:
            match action:
                case Put():
                    await self._store_record(action, deadline)
                case Look():
                    engine.looked(await self._read_record(deadline), unsleeping())
                case Drop():
                    found = await self.slots.drop(action.seq, deadline)
                    engine.dropped(found, unsleeping())
        except WrongLastSequence:
            engine.refused(unsleeping())
        except ConnectionClosed as error:
            engine.fail(str(error))
            raise
        except TwinstreamError as error:
            if engine.phase is Phase.ASKING and not may_pass(error):
                raise
            # If there are no responders, the stream may be missing. Request the record to find out.
            look = isinstance(error, NoResponders)
            engine.unanswered(str(error), unsleeping(), look=look)
            if engine.phase is Phase.HELD:
                self._log(WillRetry(f"{self.name}: renewal of token {engine.token}", error))

    async def _read_record(self, deadline: Deadline) -> SlotRecord | None:
        """Return the record of the slot, or None if the slot is free.

        If the engine needs proof that the reply is final, the call asks the leader that most
        replicas follow whether the slot has a record. Raises `NoLeader` if the reply was outdated
        and the current record is unknown.
        """
        record = await self.slots.look(self.subject, deadline)
        place = self._place
        if not self.engine.needs_proof(record) or not place.api.transport.server_info.cluster:
            return record
        has_record = await place.writes.has_message(place.stream, self.subject, deadline)
        if record is None and has_record:
            raise NoLeader(f"{self.subject}: a replica replied that lacks the leader's record")
        # The record that the leader has may be the record of this tenure.
        return await self.slots.look(self.subject, deadline) if has_record else None

    async def _store_record(self, put: Put, deadline: Deadline) -> None:
        """Store a record of the slot, and pass the sequence of the stored message to the engine."""
        request = PublishRequest(
            subject=self.subject,
            data=self._record(put).encode(),
            expected_stream=self._place.stream,
            expected_last_subject_seq=put.expected,
            ttl=self.final_ttl if put.final else self._ttl,
        )
        # `write` makes only one attempt. The engine decides about retries, and counts the lease
        # from the time of each attempt.
        place = self._place
        ack = await place.writes.write(request, place.stream, place.domain, deadline)
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


def may_pass(error: TwinstreamError) -> bool:
    """Return whether an error may be temporary, so that the request should be repeated."""
    # After `StoreFailed`: a full stream has space again when records expire.
    return is_transient(error) or isinstance(error, StoreFailed)
