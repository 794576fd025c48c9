"""Read past states of a bucket, and the changes between two states.

A state is read as a snapshot up to its revision. Then the stored revisions show whether the
snapshot is whole; see the theory of operation in `twinstream.core.kv.past`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

from attrs import frozen

from js_async.api.leader_info import confirmed_info
from js_async.kv.bucket_streams import BucketStreams
from js_async.read.get_message import first_seq_at
from js_async.read.origins import origins_of
from js_async.read.page_sources import ConsumerPages
from js_async.read.range_reader import RangeReader
from js_async.read.snapshot import collect
from js_async.read.stream_range import open_range
from twinstream.core.deadline import Deadline
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.kv.names import check_revision
from twinstream.core.kv.past import StoredRevisions, mirror_delay, removal_of
from twinstream.core.read.range_read import RangeRead
from twinstream.core.read.read_request import SnapshotRequest, choose
from twinstream.core.read.snapshot import Latest
from twinstream.core.wire.request_times import comparable
from twinstream.errors import (
    BadArgument,
    JetStreamError,
    NoResponders,
    PastNotHeld,
    TwinstreamError,
)
from twinstream.errors.kv import raise_for_bucket
from twinstream.models import RetentionPolicy, StorageType, StreamInfo, Timestamp
from twinstream.records.entry import Entries, Entry
from twinstream.records.key_change import KeyChanges, key_changes

__all__ = ["Moment", "changes_between", "entries_at"]

V = TypeVar("V")

Moment: TypeAlias = "int | datetime"
"""A revision, or a time with a zone."""

# The first sequence that a stream without `first_seq` assigns.
_FIRST: Final = 1


async def entries_at(
    place: BucketStreams,
    maker: EntryMaker[V],
    filters: Sequence[str],
    moment: Moment,
    timeout: float,
) -> Entries[V]:
    """Return the entries of the keys that had a value at a moment; see `KeyValue.at`."""
    (state,) = await _states(place, filters, (_moment(moment, "moment"),), timeout)
    entries = maker.values_by_key(state.latest.page(place.stream.name))
    return Entries(place.bucket, state.revision, entries)


async def changes_between(
    place: BucketStreams,
    maker: EntryMaker[V],
    filters: Sequence[str],
    moments: tuple[Moment, Moment | None],
    timeout: float,
) -> KeyChanges[V]:
    """Return what changed between two moments, of which None is now; see `KeyValue.diff`."""
    first, second = moments
    checked = (_moment(first, "a"), None if second is None else _moment(second, "b"))
    before, after = await _states(place, filters, checked, timeout)
    if second is not None and before.revision > after.revision:
        raise BadArgument(
            f"the moment a, revision {before.revision}, is later than the moment b, revision"
            f" {after.revision}: swap them"
        )
    return key_changes(
        place.bucket,
        place.subjects.stored,
        (before.revision, after.revision),
        _by_stored_key(place, maker, before),
        _by_stored_key(place, maker, after),
    )


def _by_stored_key(
    place: BucketStreams, maker: EntryMaker[V], state: _State
) -> dict[str, Entry[V]]:
    page = state.latest.page(place.stream.name)
    return {entry.raw_key: entry for entry in maker.of_page(page)}


def _moment(moment: object, name: str) -> int | Timestamp:
    """Return a revision or a time. Raises `BadArgument` for another value."""
    if isinstance(moment, datetime):
        return comparable(moment, name)
    return check_revision(moment, instead="; a time is a datetime with a zone")


@frozen
class _State:
    """The last message of each key up to a revision.

    `shown` is the moment in messages of errors, None for the present state.
    """

    revision: int
    latest: Latest
    shown: str | None


async def _states(
    place: BucketStreams,
    filters: Sequence[str],
    moments: Sequence[int | Timestamp | None],
    timeout: float,
) -> list[_State]:
    """Read the states at some moments, all of one bucket, and check that they are whole.

    None is the present. If the bucket is re-created or loses revisions meanwhile, because it is in
    memory and its server restarts, the function starts over.
    """
    api, name = place.api, place.stream.name
    try:
        while True:
            info = await confirmed_info(api, name, Deadline.after(timeout))
            states = [await _state(place, info, filters, each, timeout) for each in moments]
            now = await confirmed_info(api, name, Deadline.after(timeout))
            if now.created == info.created and now.state.last_seq >= info.state.last_seq:
                await _check_whole(place, now, states, timeout)
                return states
    except TwinstreamError as error:
        raise_for_bucket(place.bucket, error)


async def _state(
    place: BucketStreams,
    info: StreamInfo,
    filters: Sequence[str],
    moment: int | Timestamp | None,
    timeout: float,
) -> _State:
    """Return the state at a moment, without what the bucket no longer stores."""
    stored, latest = place.subjects.stored, Latest()
    subjects = tuple(stored + each for each in filters) or (f"{stored}>",)
    if moment is None:
        request = SnapshotRequest(subjects=subjects, timeout=timeout)
        return _State(await collect(place.api, place.stream.name, request, latest), latest, None)
    revision, shown = await _revision_at(place, info, moment)
    if revision:
        request = SnapshotRequest(subjects=subjects, at_seq=revision, timeout=timeout)
        await collect(place.api, place.stream.name, request, latest)
    return _State(revision, latest, shown)


async def _revision_at(
    place: BucketStreams, info: StreamInfo, moment: int | Timestamp
) -> tuple[int, str]:
    """Return the last revision of a state, and how messages of errors show the moment.

    Raises `BadArgument` for a revision that the bucket has not reached, and `PastNotHeld` for a
    time before the bucket was created, or at which the bucket may have had other messages.
    """
    last = info.state.last_seq
    if isinstance(moment, int):
        if moment > last:
            raise BadArgument(f"bucket {place.bucket} is at revision {last}, not yet at {moment}")
        return moment, f"revision {moment}"
    shown = moment.rfc3339()
    _check_begun(place.bucket, info, moment, shown)
    # What was stored at this very moment belongs to the state.
    after = Timestamp.from_ns(moment.ns + 1)
    revision = await first_seq_at(place.api, place.stream.name, after, last + 1) - 1
    if info.config.mirror is not None and revision >= last:
        # No later message shows that all messages up to the moment were copied.
        delay = mirror_delay(info.mirror)
        if delay:
            raise PastNotHeld.not_copied(place.bucket, shown, delay)
    return revision, shown


def _check_begun(bucket: str, info: StreamInfo, moment: Timestamp, shown: str) -> None:
    """Raise `PastNotHeld` for a time before the first state that the stream can know."""
    state = info.state
    first = state.first_ts if state.messages else None
    if info.config.storage == StorageType.MEMORY:
        # In a cluster, a restart of its server empties the stream, but keeps the time of creation,
        # and sequences begin again. Without messages, only the present state is known.
        known = first or info.ts
        if known is not None and moment < known:
            raise PastNotHeld.in_memory(bucket, shown, first)
        return
    # A restored bucket, and a mirror, have messages that are older than the stream.
    created = min((each for each in (info.created, first) if each is not None), default=None)
    if created is not None and moment < created:
        raise PastNotHeld.before_creation(bucket, shown, created)


async def _check_whole(
    place: BucketStreams, info: StreamInfo, states: Sequence[_State], timeout: float
) -> None:
    """Raise `PastNotHeld` if revisions of a state may have been removed.

    `info` was requested after the states were read.
    """
    past = [(each.revision, each.shown) for each in states if each.shown is not None]
    first, last = info.config.first_seq or _FIRST, info.state.last_seq
    if not past or info.state.messages == last + 1 - first:
        return
    origins = await origins_of(place.api, info.config, Deadline.after(timeout))
    stored = StoredRevisions(place.bucket, removal_of([info.config, *origins]), first)
    reader = await _headers(place, info, RangeRead(1, last + 1), timeout)
    try:
        while not all(stored.is_settled(revision) for revision, _ in past):
            page = await reader.next_page()
            if page is None:
                stored.end(last)
                break
            stored.add(page)
    finally:
        await reader.close()
    for revision, shown in past:
        stored.check(revision, shown)


async def _headers(
    place: BucketStreams, info: StreamInfo, read: RangeRead, timeout: float
) -> RangeReader:
    """Return a reader of all revisions, without values if the server accepts a consumer."""
    api, name, config = place.api, place.stream.name, info.config
    subjects = (f"{place.subjects.stored}>",)
    if config.retention in (None, RetentionPolicy.LIMITS):
        pages = ConsumerPages(api, name, subjects, headers_only=True)
        try:
            await pages.open(1)
        except NoResponders:
            raise
        except JetStreamError:
            # Such as a limit of consumers: values are read, too.
            await pages.close()
        else:
            return RangeReader(api, name, read, pages, filters=subjects, timeout=timeout)
    via = choose(None, 1, config, api.transport.server_info.version_numbers)
    return open_range(api, name, read, via, subjects, timeout=timeout, ahead=True)
