"""`Floors`: acknowledge messages of an elastic group that the server has copied a second time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from js_async.consume.message import frame_of
from js_async.groups.message import copy_of, group_message, note_copy, partition_of
from js_async.runtime.concurrency import Lock, Signal, Task, spawn
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import Deadline, Seconds
from twinstream.core.groups.floors import (
    BadFloors,
    Floor,
    Origins,
    Place,
    checked,
    digest,
    floor_bytes,
    floor_key,
    read_floors,
)
from twinstream.core.groups.reports import CopiesSkipped
from twinstream.errors import NotAcknowledgeable, PermissionDenied, TwinstreamError
from twinstream.errors.transient import FAILED_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from js_async.api.api import Api
    from js_async.consume.message import Message
    from js_async.consumer import Consumer
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
        api: Api,
        names: GroupNames,
        store: GroupStore[ElasticGroupConfig],
        member: str,
        report: Reporter[GroupReport],
        before: Floors | None,
    ) -> None:
        self._api: Final = api
        self._names: Final = names
        self._store: Final = store
        self._member: Final = member
        self._report: Final = report
        self._origins: Final = Origins(names.stream)
        # What this instance knew before it created its consumer again. The earlier object is not
        # kept.
        self._earlier_places: Final = before._places if before is not None else {}
        self._earlier_created: Final = before._created if before is not None else None
        self._consumer: Consumer | None = None
        self._fail: Callable[[BaseException], None] | None = None
        self._places: dict[tuple[bytes, bytes], Place] = {}
        # The records of the partitions as they were read: floors by the digests of their sources.
        self._records: dict[bytes, dict[str, Floor]] = {}
        self._created: str | None = None
        # A sequence that the source has reached.
        self._last = 0
        # Whether permissions are missing to store floors, and to see what is acknowledged.
        self._is_denied = self._is_blind = False
        self._lock: Final = Lock()
        self._opening: Final = Lock()
        self._keeper: Task | None = None
        self._ended: Final = Signal()
        self.skipped = 0
        """Number of second copies that were acknowledged without handling."""
        self._reported = 0

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
            self._keeper = spawn(self._keep, "twinstream-floors")
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
        self.skipped += 1
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

    # ---- what is stored

    async def _open(self, place: Place) -> None:
        stored = await self._stored(place.partition, place.source)
        earlier = None
        if self._created and self._created == self._earlier_created:
            earlier = self._earlier_places.get((place.partition, place.source))
        place.begin(stored, earlier)

    async def _stored(self, partition: bytes, source: bytes) -> Floor:
        """Return the stored floor. Without a valid one, all messages are handled."""
        if self._is_denied:
            return (0, 0)
        key = floor_key(self._names, partition.decode("ascii", "replace"))
        try:
            if partition not in self._records:
                self._records[partition] = await self._read(key)
            floor = self._records[partition].get(digest(source))
            if floor is not None:
                if floor[0] > self._last:
                    # Requested after the floor, so a true floor is not above it.
                    stream = await self._api.stream_info(self._names.stream)
                    self._last = stream.state.last_seq or 0
                return checked(floor, self._last)
        except BadFloors as error:
            self._warn(f"the stored floor {key} is ignored: {error}")
        except PermissionDenied as error:
            self._deny(error)
        except TwinstreamError as error:
            self._warn(f"the stored floor {key} could not be read: {error}")
        return (0, 0)

    async def _read(self, key: str) -> dict[str, Floor]:
        created = await self._incarnation()
        entry = await self._store.bucket.entry(key)
        if entry is None or not entry.is_value:
            return {}
        return read_floors(entry.raw_value, created)

    async def _incarnation(self) -> str:
        """Return the creation time of the group's stream."""
        if self._created is None:
            info = await self._api.stream_info(self._names.source)
            self._created = str(info.created)
        return self._created

    async def _keep(self) -> None:
        """Write the floors at intervals, until `close`."""
        try:
            while not await self._ended.sleep(Deadline.after(_INTERVAL)):
                with suppress(TwinstreamError):
                    await self._write(None)
                self._report_skipped()
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
        self._report_skipped()

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
            self._deny(error)
        if self._is_denied:
            for place in places:
                place.stored = place.floor
            return
        places = list(self._places.values())
        changed = {place.partition for place in places if place.floor != place.stored}
        for partition in sorted(changed):
            mine = [place for place in places if place.partition == partition and place.is_opened]
            await self._write_one(partition, mine, timeout)

    async def _write_one(
        self, partition: bytes, places: list[Place], timeout: Seconds | None
    ) -> None:
        floors = {place: place.floor for place in places if place.floor[0]}
        record = self._records.setdefault(partition, {})
        record.update({digest(place.source): floor for place, floor in floors.items()})
        key = floor_key(self._names, partition.decode("ascii", "replace"))
        try:
            value = floor_bytes(await self._incarnation(), record)
            await self._store.bucket.put(key, value, timeout=timeout)
        except PermissionDenied as error:
            self._deny(error)
            return
        for place, floor in floors.items():
            place.stored = floor

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

    # ---- reports

    def _deny(self, error: PermissionDenied) -> None:
        """Stop reading and writing floors."""
        if not self._is_denied:
            self._is_denied = True
            self._warn(f"floors are not stored, see the permissions of the worker: {error}")

    def _warn(self, text: str) -> None:
        self._report(PullWarning(text), kind=text)

    def _report_skipped(self) -> None:
        count = self.skipped - self._reported
        if count:
            self._reported += count
            names = self._names
            self._report(CopiesSkipped(names.stream, names.group, self._member, count))
