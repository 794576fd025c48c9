"""Reading many keys: their names, their history, all as of one revision, and dropping markers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from attrs import frozen

from js_async._io import Stream as Generated
from js_async.kv_place import Place
from js_async.kv_watch import CAUGHT_UP, KeyWatch, WatchOptions
from js_core.deadline import Deadline, Seconds, seconds
from js_core.errors import StreamNotFound, TwinstreamError
from js_core.kv_entries import EntryMaker
from js_core.kv_entry import Entries, Entry
from js_core.kv_errors import KeyNotFound, raise_for_bucket
from js_models import Timestamp

__all__ = ["PurgedMarkers", "entries_of", "history_of", "keys_of", "purge_markers"]

V = TypeVar("V")


async def keys_of(
    place: Place, maker: EntryMaker[V], filters: Sequence[str], timeout: float
) -> Generated[str]:
    """Iterate over the keys that have a value, each once, whatever is written meanwhile.

    Of keys that were there at the start only a number each is kept, to tell whether one that is
    written meanwhile came already: 8 bytes a key.
    """
    watch = KeyWatch(place, maker, filters, WatchOptions(meta_only=True))
    # Keys by their last word, where that is newer than the start.
    written: dict[str, bool] = {}
    numbers = array("q")
    generation = 1
    try:
        await watch.open()
        while (step := await watch._take(Deadline.after(timeout))) is not CAUGHT_UP:
            if step is None:
                break
            if watch.state.generation != generation:
                # The bucket was created again, and its state comes from the beginning.
                generation = watch.state.generation
                written.clear()
            if step.revision > watch.messages._last_at_start:
                written[step.key] = step.is_value
            elif step.is_value:
                numbers.append(hash(step.key))
                yield step.key
        came = {hash(key) for key in written}.intersection(numbers)
        for key, is_value in written.items():
            if is_value and hash(key) not in came:
                yield key
    finally:
        await watch.close()


async def history_of(
    place: Place, maker: EntryMaker[V], key: str, shown: str, timeout: float
) -> list[Entry[V]]:
    """Return the revisions of a stored key, oldest first, markers included."""
    subject = place.subjects.stored + key
    try:
        reading = place.stream.read(subjects=subject, timeout=timeout)
        found = [maker.of_stored(message) async for message in reading]
    except TwinstreamError as error:
        raise_for_bucket(place.bucket, error)
    if not found:
        raise KeyNotFound(place.bucket, shown)
    return found


async def entries_of(
    place: Place,
    maker: EntryMaker[V],
    filters: Sequence[str],
    at_revision: int | None,
    timeout: float,
) -> Entries[V]:
    """Return the values of keys, all as of one revision."""
    stored = place.subjects.stored
    subjects = [stored + each for each in filters] or [f"{stored}>"]
    try:
        taken = await place.stream.snapshot(subjects, at_seq=at_revision, timeout=timeout)
    except StreamNotFound as error:
        raise_for_bucket(place.bucket, error)
    made = (maker.of_stored(message) for message in taken.values())
    return Entries(place.bucket, taken.seq, {entry.key: entry for entry in made if entry.is_value})


@frozen
class PurgedMarkers:
    """What `KeyValue.purge_deletes` did."""

    removed: int
    """Keys whose markers were removed, with the revisions below them."""
    kept: int
    """Keys whose markers are too young and stay; the revisions below them were removed."""


async def purge_markers(
    place: Place, maker: EntryMaker[V], older_than: Seconds, timeout: float
) -> PurgedMarkers:
    """Remove what is left of deleted keys. A value written meanwhile stays."""
    age = timedelta(seconds=seconds(older_than, "older_than"))
    watch = KeyWatch(place, maker, (), WatchOptions(meta_only=True))
    markers: list[tuple[str, int, Timestamp]] = []
    try:
        await watch.open()
        while (step := await watch._take(Deadline.after(timeout))) is not CAUGHT_UP:
            if step is None:
                break
            if not step.is_value:
                markers.append((step.raw_key, step.revision, step.created))
        info = await place.stream.info()
    finally:
        await watch.close()
    # By the server's clock, which stamped the markers.
    limit = (info.ts or datetime.now(UTC)) - age
    removed = kept = 0
    for key, revision, created in markers:
        is_old = created <= limit
        # Only up to the marker: what was written since has a higher revision.
        before = revision + 1 if is_old else revision
        await place.stream.purge(subject=place.subjects.stored + key, before_seq=before)
        removed, kept = removed + is_old, kept + (not is_old)
    return PurgedMarkers(removed, kept)
