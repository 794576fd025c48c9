"""Operations on many keys: list keys, read revisions and values, and remove old markers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from attrs import frozen

from js_async.kv.bucket_streams import BucketStreams
from js_async.kv.watch import CaughtUp, KeyWatch, Reader, WatchOptions
from js_async.read.snapshot import collect, collect_of_one
from js_async.runtime.concurrency import Items
from twinstream.core.consume.metadata import Position
from twinstream.core.deadline import Deadline, Seconds, seconds
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.log.events import MarkersSkipped
from twinstream.core.log.logger import Log
from twinstream.core.read.read_request import snapshot_request
from twinstream.core.read.snapshot import Latest
from twinstream.core.wire.header_text import valid
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import BadArgument, KeyNotFound, StreamNotFound, TwinstreamError
from twinstream.errors.kv import raise_for_bucket
from twinstream.models import StreamInfo, Timestamp
from twinstream.records.entry import Entries, Entry, KeyValueOperation, may_be_marker, operation_of
from twinstream.records.headers import Headers

__all__ = ["PurgeDeletesResult", "entries_of", "history_of", "keys_of", "purge_markers"]

V = TypeVar("V")

_LOG: Final = Log("kv")


async def keys_of(
    place: BucketStreams, maker: EntryMaker[V], filters: Sequence[str], timeout: float
) -> Items[str]:
    """Iterate over the keys that have a value; each is returned once, despite concurrent writes.

    Keys whose last entry was stored before the start are returned at once. Keys that are written
    during the iteration are returned at the end, unless they were returned before. To recognise
    returned keys, the function keeps a hash of 8 bytes of each of them. The end is decided after
    all keys of the first kind were returned. If the bucket was re-created by then, the keys of the
    new bucket are returned like those that are written during the iteration.
    """
    watch = KeyWatch(place, _key_reader(maker), filters, WatchOptions(meta_only=True))
    # Maps each key written during the iteration to whether its last entry is a value.
    written: dict[str, bool] = {}
    numbers = array("q")
    generation = 1
    try:
        await watch.open()
        while True:
            step = watch.take_nowait() or await watch.take(Deadline.after(timeout))
            if watch.state.generation != generation:
                # The bucket was re-created, so the watch delivers the whole state of the new one.
                generation = watch.state.generation
                written.clear()
            if step is None or isinstance(step, CaughtUp):
                break
            key, revision, is_value = step
            if generation > 1 or revision > watch.messages.last_at_start:
                written[key] = is_value
            elif is_value:
                numbers.append(hash(key))
                yield key
        present = {hash(key) for key in written}.intersection(numbers)
        for key, is_value in written.items():
            if is_value and hash(key) not in present:
                yield key
    finally:
        await watch.close()


async def history_of(
    place: BucketStreams, maker: EntryMaker[V], key: str, shown: str, timeout: float
) -> list[Entry[V]]:
    """Return the revisions of the stored key `key`, oldest first, including markers.

    Error messages show the key as `shown`. Raises `KeyNotFound` if no revision of the key is
    stored. If the bucket is re-created meanwhile, the function starts over.
    """
    subject = place.subjects.stored + key
    while True:
        reading = place.stream.read(subjects=subject, idle_timeout=timeout)
        try:
            async with reading:
                found = [maker.of_stored(message) async for message in reading]
        except StreamNotFound as error:
            if reading.via is None:
                # The read did not begin, so the bucket does not exist.
                raise_for_bucket(place.bucket, error)
            continue
        except TwinstreamError as error:
            raise_for_bucket(place.bucket, error)
        if not found:
            raise KeyNotFound(place.bucket, shown)
        return found


async def entries_of(
    place: BucketStreams,
    maker: EntryMaker[V],
    filters: Sequence[str],
    at_revision: int | None,
    timeout: float,
) -> Entries[V]:
    """Return the entries of the keys that have a value, as of one revision.

    The keys match one of `filters`. Without filters, the result contains all keys.
    """
    stored, name = place.subjects.stored, place.stream.name
    subjects = [stored + each for each in filters] or [f"{stored}>"]
    request, latest = snapshot_request(subjects, at_revision, None, timeout), Latest()
    info = place.info_of_one
    try:
        if info is None:
            seq = await collect(place.api, name, request, latest)
        else:
            # A program may have added replicas, one of which may lag behind what was seen here.
            least = 0 if place.is_mirror else place.seen
            seq = await collect_of_one(place.api, info, request, latest, least)
    except StreamNotFound as error:
        raise_for_bucket(place.bucket, error)
    return Entries(place.bucket, seq, maker.values_by_key(latest.page(name)))


@frozen
class PurgeDeletesResult:
    """The result of `KeyValue.purge_deletes`."""

    removed: int
    """The number of keys whose markers and older revisions were removed."""
    kept: int
    """The number of keys whose marker was kept as too young. Their older revisions were removed."""
    skipped: int = 0
    """The number of markers that were kept because of their keys.

    Another client has stored them under subjects with a wildcard, or that are not UTF-8. To remove
    such a marker could remove other keys.
    """


def _is_value(frame: Frame) -> bool:
    size, body = frame[2], frame[3]
    if not size:
        return True
    block = body[:size]
    return not may_be_marker(block) or operation_of(Headers.parse(block)) is KeyValueOperation.PUT


def _key_reader(maker: EntryMaker[V]) -> Reader[tuple[str, int, bool]]:
    """Return a function that reads a message's key and revision, and if the message is a value."""
    key = maker.key

    def read(frame: Frame, position: Position) -> tuple[str, int, bool]:
        return key(frame[0].decode("utf-8", "surrogateescape")), position[0], _is_value(frame)

    return read


def _read_marker(frame: Frame, position: Position) -> tuple[str, int, int] | None:
    """Return the subject, revision and time (Unix, ns) of a marker, or None for a value."""
    if _is_value(frame):
        return None
    return frame[0].decode("utf-8", "surrogateescape"), position[0], position[2]


async def purge_markers(
    place: BucketStreams, older_than: Seconds, timeout: float
) -> PurgeDeletesResult:
    """Remove markers and older revisions of deleted keys; see `KeyValue.purge_deletes`."""
    age = seconds(older_than, "older_than")
    try:
        markers, info = await _markers_of(place, timeout)
        # The age is computed with the server's clock, because the markers have the server's time.
        now = Timestamp.of(info.ts or datetime.now(UTC)).ns
        limit = -1 if math.isinf(age) else now - round(age * 1e9)
        removed = kept = skipped = 0
        for subject, revision, created in markers:
            if not _is_of_one_key(subject):
                skipped += 1
                continue
            is_old = created <= limit
            # Remove the revisions before the marker, and the marker if it is old. A value that was
            # written after the marker has a higher revision, so it is kept.
            before = revision + 1 if is_old else revision
            await place.stream.purge(subject=subject, before_seq=before, timeout=timeout)
            removed, kept = removed + is_old, kept + (not is_old)
    except StreamNotFound as error:
        raise_for_bucket(place.bucket, error)
    if skipped:
        _LOG(MarkersSkipped(place.bucket, skipped))
    return PurgeDeletesResult(removed, kept, skipped)


def _is_of_one_key(subject: str) -> bool:
    """Return whether a purge of a stored subject removes only its messages.

    A server stores messages under subjects such as `$KV.B.>`, which a purge takes for a filter.
    """
    try:
        check_subject(subject)
    except BadArgument:
        return False
    return valid(subject) == subject


async def _markers_of(
    place: BucketStreams, timeout: float
) -> tuple[list[tuple[str, int, int]], StreamInfo]:
    """Return the subject, revision and time (Unix, ns) of each marker, and the stream's info.

    If the bucket is re-created meanwhile, the function starts over: a new value may have the
    revision of an old marker.
    """
    info = await place.stream.info(timeout=timeout)
    while True:
        before, markers = info, await _read_markers(place, timeout)
        info = await place.stream.info(timeout=timeout)
        if info.created == before.created:
            return markers, info


async def _read_markers(place: BucketStreams, timeout: float) -> list[tuple[str, int, int]]:
    watch = KeyWatch(place, _read_marker, (), WatchOptions(meta_only=True))
    markers: list[tuple[str, int, int]] = []
    try:
        await watch.open()
        while True:
            step = await watch.take(Deadline.after(timeout))
            if step is None or isinstance(step, CaughtUp):
                return markers
            markers.append(step)
    finally:
        await watch.close()
