"""`Floors`: acknowledge messages of an elastic group that the server has copied a second time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from js_async.extension import frame_of
from js_async.groups.floor_records import FloorRecords
from js_async.groups.message import copy_of, group_message, note_copy, partition_of
from js_async.runtime.concurrency import Lock, Signal, Task, spawn
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.groups.floors import Origins, Place
from twinstream.core.groups.reports import CopiesSkipped
from twinstream.errors import NotAcknowledgeable, PermissionDenied, TwinstreamError
from twinstream.errors.transient import FAILED_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from js_async import Consumer, JetStream, Message
    from js_async.groups.message import GroupMessage
    from js_async.groups.store import GroupStore
    from twinstream.core.groups.names import GroupNames
    from twinstream.core.groups.reports import GroupReport
    from twinstream.core.log.reporter import Reporter
    from twinstream.models import ElasticGroupConfig

__all__ = ["Floors"]

# The floors are written at this interval (seconds).
_INTERVAL: Final = 1.0
# Timeout of the requests when the instance leaves (seconds).
_LAST: Final = 2.0


class Floors:
    """The floors of a member's partitions, and the second copies that it has received.

    Each partition has a record in the bucket of the group. The instance reads it with the first
    message of the partition, and writes it at most once a second, and when it leaves.
    """

    def __init__(
        self,
        jet: JetStream,
        names: GroupNames,
        store: GroupStore[ElasticGroupConfig],
        member: str,
        report: Reporter[GroupReport],
        before: Floors | None,
    ) -> None:
        self._origins: Final = Origins(names.stream)
        self._records: Final = FloorRecords(jet, names, store, report)
        # What this instance knew before it created its consumer again. The earlier object is not
        # kept.
        self._earlier: Final = None if before is None else (before._records.created, before._places)
        self._consumer: Consumer | None = None
        self._fail: Callable[[BaseException], None] | None = None
        self._places: dict[tuple[bytes, bytes], Place] = {}
        # Whether permissions are missing to see what is acknowledged.
        self._is_blind = False
        self._lock: Final = Lock()
        self._opening: Final = Lock()
        self._keeper: Task | None = None
        self._ended: Final = Signal()
        self._copies: Final = _SkippedCopies(names, member, report)

    @property
    def skipped(self) -> int:
        """Number of second copies that were acknowledged without handling."""
        return self._copies.count

    def bind(self, consumer: Consumer, fail: Callable[[BaseException], None]) -> None:
        """Use the consumer of the member. `fail` is called with an error of the background work."""
        self._consumer, self._fail = consumer, fail

    def adapt(self, received: Message) -> GroupMessage:
        """Return a received message as a `GroupMessage`, and note where it comes from.

        `note_copy` records whether the message may be a second copy.
        """
        message = group_message(received)
        if self._is_blind:
            return message
        frame = frame_of(message)
        found = self._origins.read(frame[3], frame[2])
        if found is None:
            return message
        source, origin = found
        partition = partition_of(message)
        place = self._places.get((partition, source))
        if place is None:
            place = self._added(partition, source)
        try:
            seq = message.metadata.stream_seq
        except NotAcknowledgeable:
            return message
        note_copy(message, place, origin, again=origin <= place.highest)
        place.open.append((origin, seq))
        place.highest = max(place.highest, origin)
        return message

    def _added(self, partition: bytes, source: bytes) -> Place:
        place = self._places[partition, source] = Place(partition, source)
        if self._keeper is None:
            self._keeper = spawn(self._write_at_intervals, "twinstream-floors")
        return place

    async def skips(self, message: GroupMessage) -> bool:
        """Return whether a message is a second copy of a processed one; acknowledge it then."""
        copy = copy_of(message)
        if copy is None:
            return False
        place, origin = copy
        async with self._opening:
            if not place.is_opened:
                await self._open(place)
        if not place.has_processed(origin, message.metadata.stream_seq):
            return False
        self._copies.count += 1
        with suppress(*FAILED_REQUEST):
            await message.ack()
        return True

    def note_processed(self, message: GroupMessage) -> None:
        """Note that this instance has processed a message."""
        copy = copy_of(message)
        if copy is not None:
            place, origin = copy
            place.done(origin)

    def is_keeper(self) -> bool:
        """Return whether the caller is the background work of this object."""
        return self._keeper is not None and self._keeper.is_current()

    # ---- the stored floors

    async def _open(self, place: Place) -> None:
        stored = await self._records.read(place.partition, place.source)
        earlier = None
        if self._earlier is not None:
            created, places = self._earlier
            if created and created == self._records.created:
                earlier = places.get((place.partition, place.source))
        place.begin(stored, earlier)

    async def _write_at_intervals(self) -> None:
        """Write the floors at intervals, until `close`."""
        try:
            while not await self._ended.sleep(Deadline.after(_INTERVAL)):
                with suppress(TwinstreamError):
                    await self._write(None)
                self._copies.report()
        except Exception as error:
            if self._fail is not None:
                self._fail(error)

    async def close(self) -> None:
        """Write the floors for the last time. Call this before another instance may take over."""
        self._ended.set()
        if self._keeper is not None:
            await self._keeper.join(Deadline.after(_LAST))
        with suppress(TwinstreamError):
            await self._write(_LAST)
        self._copies.report()

    async def _write(self, timeout: Seconds | None) -> None:
        places = list(self._places.values())
        if not any(each.is_changed for each in places):
            return
        try:
            await self._advance(timeout)
        except PermissionDenied as error:
            self._is_blind = True
            for place in places:
                place.open.clear()
            self._records.deny(error)
        await self._records.write(list(self._places.values()), timeout)

    async def _advance(self, timeout: Seconds | None = None) -> None:
        """Raise the floors up to what the server reports as acknowledged."""
        if self._consumer is None:
            return
        async with self._lock:
            info = await self._consumer.info(timeout=timeout)
            floor = info.ack_floor
            acknowledged = floor.stream_seq if floor is not None else 0
            for place in list(self._places.values()):
                place.advance(acknowledged)


class _SkippedCopies:
    """The number of second copies that were skipped, of which each is reported once."""

    def __init__(self, names: GroupNames, member: str, report: Reporter[GroupReport]) -> None:
        self._names: Final = names
        self._member: Final = member
        self._report: Final = report
        self._reported = 0
        self.count = 0

    def report(self) -> None:
        """Report the copies that were skipped since the last call."""
        count = self.count - self._reported
        if count:
            self._reported += count
            names = self._names
            self._report(CopiesSkipped(names.stream, names.group, self._member, count))
