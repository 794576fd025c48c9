"""The floors of a group's partitions in the bucket of the group: a record for each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinstream.core.consume.reports import PullWarning
from twinstream.core.groups.floors import (
    BadFloors,
    Floor,
    Place,
    checked,
    digest,
    floor_bytes,
    floor_key,
    read_floors,
)
from twinstream.errors import PermissionDenied, TwinstreamError

if TYPE_CHECKING:
    from js_async import JetStream
    from js_async.groups.store import GroupStore
    from twinstream.core.deadline import Seconds
    from twinstream.core.groups.names import GroupNames
    from twinstream.core.groups.reports import GroupReport
    from twinstream.core.log.reporter import Reporter
    from twinstream.models import ElasticGroupConfig

__all__ = ["FloorRecords"]


class FloorRecords:
    """Reads and writes the floors of partitions. Without the permission, it stops doing so."""

    def __init__(
        self,
        jet: JetStream,
        names: GroupNames,
        store: GroupStore[ElasticGroupConfig],
        report: Reporter[GroupReport],
    ) -> None:
        self._jet: Final = jet
        self._names: Final = names
        self._store: Final = store
        self._report: Final = report
        # The records as they were read: floors by the digests of their sources.
        self._records: dict[bytes, dict[str, Floor]] = {}
        # A sequence that the source has reached.
        self._last = 0
        self.created: str | None = None
        """The creation time of the group's stream, if a record was read or written."""
        self.is_denied = False
        """Whether permissions are missing to read or write floors."""

    async def read(self, partition: bytes, source: bytes) -> Floor:
        """Return the stored floor. Without a valid one, all messages are handled."""
        if self.is_denied:
            return (0, 0)
        key = self._key(partition)
        try:
            if partition not in self._records:
                self._records[partition] = await self._read(key)
            floor = self._records[partition].get(digest(source))
            if floor is not None:
                if floor[0] > self._last:
                    # Requested after the floor, so a true floor is not above it.
                    stream = await self._jet.bind_stream(self._names.stream).info()
                    self._last = stream.state.last_seq or 0
                return checked(floor, self._last)
        except BadFloors as error:
            self._warn(f"the stored floor {key} is ignored: {error}")
        except PermissionDenied as error:
            self.deny(error)
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
        if self.created is None:
            info = await self._jet.bind_stream(self._names.source).info()
            self.created = str(info.created)
        return self.created

    async def write(self, places: list[Place], timeout: Seconds | None) -> None:
        """Write the floors that were raised, a record for each partition."""
        if self.is_denied:
            for place in places:
                place.stored = place.floor
            return
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
        try:
            value = floor_bytes(await self._incarnation(), record)
            await self._store.bucket.put(self._key(partition), value, timeout=timeout)
        except PermissionDenied as error:
            self.deny(error)
            return
        for place, floor in floors.items():
            place.stored = floor

    def _key(self, partition: bytes) -> str:
        return floor_key(self._names, partition.decode("ascii", "replace"))

    def deny(self, error: PermissionDenied) -> None:
        """Stop reading and writing floors."""
        if not self.is_denied:
            self.is_denied = True
            self._warn(f"floors are not stored, see the permissions of the worker: {error}")

    def _warn(self, text: str) -> None:
        self._report(PullWarning(text), kind=text)
