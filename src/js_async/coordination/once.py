"""Work that runs at most once per key among all clients of a stream, and its result."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from js_async.coordination.acquire import SlotAcquisition
from js_async.coordination.lease import Lease
from js_async.coordination.slot import Place, Slot, Slots, may_pass
from js_async.runtime.concurrency import Handler, call, check_handler
from twinstream.core.coordination.lease_engine import Terms
from twinstream.core.coordination.lease_record import HELD, LeaseRecord, SlotRecord
from twinstream.core.deadline import Backoff, Deadline, Seconds, is_cut_short
from twinstream.core.on_failure import AsyncOnError
from twinstream.errors import (
    BadArgument,
    LeaseLost,
    RequestTimeout,
    TwinstreamError,
)

__all__ = ["Once", "OnceResult"]

_DONE: Final = "done"
_FAILED: Final = "failed"
_RUNNING: Final = "running"
_LONGEST_NOTE: Final = 1000
# The assumed size in bytes of a message's headers and of the record fields that `Slot` adds.
_ROOM: Final = 1000
_BACKOFF: Final = Backoff(0.25, 5.0)


@frozen(kw_only=True)
class OnceResult:
    """The state of the work of a key, and its result if it has ended."""

    state: str
    """`done`, `failed` or `running`.

    If the client died during the work, the state stays `running`.
    """
    data: bytes
    """The return value of the work; empty unless it is done."""
    error: str
    """The text of the error that the work raised; empty unless it failed."""
    owner: str
    """The name of the client that ran the work, or is running it."""
    token: int
    """The stream sequence of the message with which the work started."""
    ran_here: bool
    """Whether this call ran the work."""


class Once:
    """Work with a key that runs at most once, created by `Coordination.once`."""

    def __init__(self, place: Place, key: str, terms: Terms, keep: float | None) -> None:
        self._place: Final = place
        self._key: Final = key
        self._terms: Final = terms
        self._keep: Final = keep
        self._slots: Final = Slots(place)
        self._subject: Final = place.subjects.slot("once", key)

    @property
    def key(self) -> str:
        """The key of the work, which is the same for all its users."""
        return self._key

    def __repr__(self) -> str:
        return f"<Once {self._place.stream} {self._key}>"

    async def run(self, work: Handler[Lease], *, timeout: Seconds = 5.0) -> OnceResult:
        """Run the work unless any client has started it before; return its result.

        If a client has started the work before, the call returns the result of the earlier run, or
        a result with the state `running`. If the work raises an error, the state `failed` and the
        text of the error are stored. A result that is too large counts as such an error.

        Args:
            work: The function to run. It receives the lease and returns bytes or None.
            timeout: Seconds for storing the result.

        Raises:
            BadArgument: The work did not return bytes or None, or the result is too large for the
                server or stream.
            RequestTimeout: The server did not confirm the result in time.
            LeaseLost: The lease expired during the work.
            Exception: The error of the work.
        """
        check_handler(work, "work")
        await self._place.ready()
        asking = SlotAcquisition(self._place, "once", self._key, self._terms, "")
        slot = await asking.attempt(self._place.api.deadline())
        if slot is None:
            return _result(asking.holder or await self._record(self._place.api.deadline()))
        lease = Lease(slot)
        lease._start()

        async def failed(error: BaseException) -> None:
            note = (str(error) or type(error).__name__)[:_LONGEST_NOTE]
            await self._store_final(slot, lease, self._final(_FAILED, note=note), timeout)

        async with AsyncOnError(failed):
            data = _bytes(await call(work, lease))
            self._check_size(data)
        final = self._final(_DONE, data=data)
        await self._store_final(slot, lease, final, timeout)
        return OnceResult(
            state=_DONE,
            data=data,
            error="",
            owner=final.owner,
            token=lease.token,
            ran_here=True,
        )

    def _check_size(self, data: bytes) -> None:
        # Without this check, the lease would retry an oversized record until the lease expires.
        size = len(self._final(_DONE, data=data).encode()) + _ROOM
        limit, who = self._place.api.transport.server_info.max_payload, "the server"
        most = self._place.max_msg_size
        if most is not None and most < limit:
            limit, who = most, f"stream {self._place.stream}"
        if size > limit:
            raise BadArgument(
                f"once {self._key}: the result has {len(data)} bytes, its record about {size},"
                f" {who} takes {limit}: store it elsewhere, and return its location"
            )

    def _final(self, state: str, *, note: str = "", data: bytes = b"") -> LeaseRecord:
        return LeaseRecord(
            owner=self._place.owner, tenure="", attempt=0, state=state, note=note, data=data
        )

    async def _store_final(
        self, slot: Slot, lease: Lease, final: LeaseRecord, timeout: Seconds
    ) -> None:
        slot.final, slot.final_ttl = final, self._keep
        if await lease.release(timeout=timeout):
            return
        if lease.lost is not None:
            raise LeaseLost(f"once {self._key}: the work ran, its end is not stored: {lease.lost}")
        raise RequestTimeout(
            f"once {self._key}: the work ran, but its result was not confirmed in time"
            f" ({slot.engine.reason or 'no answer yet'})"
        )

    async def _record(self, deadline: Deadline) -> SlotRecord | None:
        await self._place.ready(deadline)
        return await self._slots.look(self._subject, deadline)

    async def result(self, *, timeout: Seconds | None = None) -> OnceResult | None:
        """Return the result of the work, or None if the work never started or was forgotten.

        Args:
            timeout: Seconds; the default is that of the API.
        """
        record = await self._record(self._place.api.deadline(timeout))
        return None if record is None else _result(record)

    async def wait(self, *, timeout: Seconds | None = None) -> OnceResult:
        """Wait until the work has ended, and return its result.

        The call also waits if the work has not started, and while the server cannot be reached.

        Args:
            timeout: The longest wait in seconds; None waits without limit. After this time, the
                call raises `RequestTimeout`.
        """
        deadline = Deadline.after(timeout)
        await self._place.ready(self._place.patience(deadline))
        transport = self._place.api.transport
        box = await transport.open_mailbox(self._place.subjects.freed("once", self._key).encode())
        pauses = iter(_BACKOFF)
        # Why the result is not known, and whether any request has shown that.
        reason, is_known = "", False
        try:
            while not deadline.expired():
                box.take_all()
                found = await self._result_if_ended(deadline)
                if isinstance(found, OnceResult):
                    return found
                if found is None:
                    reason, is_known = "", True
                elif not (is_known and is_cut_short(found, deadline)):
                    reason, is_known = f" ({found})", True
                pause = Deadline.after(next(pauses))
                await transport.wait(box.signal, deadline.earlier(pause.at))
        finally:
            await transport.close_mailbox(box)
        raise RequestTimeout(f"once {self._key}: the work has not ended in time{reason}")

    async def _result_if_ended(self, deadline: Deadline) -> OnceResult | TwinstreamError | None:
        """Return the result if the work has ended, else None.

        If the request failed temporarily, returns the error.
        """
        try:
            record = await self._slots.look(self._subject, self._place.patience(deadline))
        except TwinstreamError as error:
            if not may_pass(error):
                raise
            return error
        return None if record is None or record.state == HELD else _result(record)

    async def forget(self, *, timeout: Seconds | None = None) -> bool:
        """Remove the record of the key, so that the work may run again.

        Return whether the key had a record. Work that runs now is not stopped, so a second run may
        start at the same time.

        Args:
            timeout: Seconds for the whole call; the default is that of the API.
        """
        deadline = self._place.api.deadline(timeout)
        record = await self._record(deadline)
        return record is not None and await self._slots.drop(record.seq, deadline)


def _result(record: SlotRecord | None) -> OnceResult:
    if record is None:
        raise RequestTimeout("other clients keep starting and forgetting the key: try again")
    return OnceResult(
        state=_RUNNING if record.state == HELD else record.state,
        data=record.data,
        error=record.note,
        owner=record.owner,
        token=record.token,
        ran_here=False,
    )


def _bytes(value: object) -> bytes:
    if value is None:
        return b""
    if not isinstance(value, bytes):
        raise BadArgument(f"work that runs once returns bytes or None, got {type(value)!r}")
    return value
