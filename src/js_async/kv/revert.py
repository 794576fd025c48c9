"""Undo the changes of a bucket: in one atomic batch, or in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from js_async.kv.bucket_streams import BucketStreams
from js_async.kv.writes import BucketWrites
from js_async.publish.atomic_batch import AtomicBatch
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.publish.limits import BATCH_MESSAGES
from twinstream.errors import (
    BadArgument,
    RevisionMismatch,
    TwinstreamError,
    UnsuitableSettings,
    WrongLastSequence,
)
from twinstream.errors.kv import raise_for_bucket
from twinstream.records.entry import DELETED, Entry
from twinstream.records.guarantee_gap import GuaranteeGap
from twinstream.records.key_change import KeyChange, KeyChanges

__all__ = ["revert"]

V = TypeVar("V")


async def revert(
    place: BucketStreams,
    writes: BucketWrites,
    maker: EntryMaker[V],
    changes: KeyChanges[V],
    in_parts: bool,
    timeout: float,
) -> list[KeyChange[V]]:
    """Undo changes, and return those that were left; see `KeyValue.revert`."""
    check_kind(changes, KeyChanges, "changes", "what diff returned")
    if changes.bucket != place.bucket:
        raise BadArgument(f"the changes are those of {changes.bucket}, not of {place.bucket}")
    undone = list(changes.values())
    stream = await place.target(place.api.deadline(timeout))
    try:
        config = (await stream.info(timeout=timeout)).config
        if len(undone) <= 1:
            pass
        elif not config.allow_atomic:
            if not in_parts:
                raise _not_atomic(stream.name, len(undone))
        elif len(undone) <= BATCH_MESSAGES or in_parts:
            return await _in_batches(place, stream.name, undone, timeout, in_parts)
        else:
            raise BadArgument(
                f"{len(undone)} changes do not fit into one atomic batch of {BATCH_MESSAGES}"
                " messages: revert fewer keys, or revert with in_parts=True in several batches"
            )
        return await _one_by_one(writes, maker, undone, timeout, in_parts)
    except TwinstreamError as error:
        raise_for_bucket(place.bucket, error)


def _not_atomic(stream: str, count: int) -> UnsuitableSettings:
    because = f"the server cannot write {count} changes together"
    instead = "set allow_atomic of the stream (server 2.12), or revert with in_parts=True"
    gap = GuaranteeGap("allow_atomic", "false", because, instead)
    return UnsuitableSettings(stream, "an atomic revert", (gap,))


async def _in_batches(
    place: BucketStreams,
    stream: str,
    changes: Sequence[KeyChange[V]],
    timeout: float,
    in_parts: bool,
) -> list[KeyChange[V]]:
    """Undo changes by atomic batches; return those of the batches that the server refused.

    Without `in_parts`, raise the refusal of the only batch.
    """
    left: list[KeyChange[V]] = []
    for at in range(0, len(changes), BATCH_MESSAGES):
        part = changes[at : at + BATCH_MESSAGES]
        try:
            await _batch(place, stream, part, timeout)
        except WrongLastSequence as error:
            if not in_parts:
                error.add_note(
                    f"another client has written a key since, so none of the {len(part)} changes"
                    " was undone"
                )
                raise
            left += part
    return left


async def _batch(
    place: BucketStreams, stream: str, changes: Sequence[KeyChange[Any]], timeout: float
) -> None:
    async with AtomicBatch(place.target_api, None, BATCH_MESSAGES, timeout) as batch:
        for change in changes:
            data, headers = _wanted(change)
            await batch.add(
                place.subjects.to_write(_key(change)),
                data,
                headers=headers,
                expected_stream=stream,
                expected_last_subject_seq=_revision(change),
            )
    for number, change in enumerate(changes, batch.ack.seq - len(changes) + 1):
        place.wrote(_key(change), number)


async def _one_by_one(
    writes: BucketWrites,
    maker: EntryMaker[V],
    changes: Sequence[KeyChange[V]],
    timeout: float,
    in_parts: bool,
) -> list[KeyChange[V]]:
    """Undo changes by conditional writes; return those whose keys were written since.

    Without `in_parts`, raise the refusal of the only write.
    """
    left: list[KeyChange[V]] = []
    for change in changes:
        (data, headers), revision, key = _wanted(change), _revision(change), _key(change)
        try:
            if revision:
                await writes.update(key, data, revision, headers=headers, timeout=timeout)
            else:
                await writes.create(key, data, maker, timeout=timeout)
        except RevisionMismatch:
            if not in_parts:
                raise
            left.append(change)
    return left


def _wanted(change: KeyChange[V]) -> tuple[bytes, dict[str, str] | None]:
    """Return the value before a change, or an empty one and the headers of a marker."""
    before = change.before
    if before is not None and before.is_value:
        return before.raw_value, None
    return b"", DELETED


def _revision(change: KeyChange[V]) -> int:
    """Return the revision of a key after its change; 0 if none is stored."""
    return 0 if change.after is None else change.after.revision


def _key(change: KeyChange[Any]) -> str:
    entry: Entry[Any] | None = change.after or change.before
    return change.key if entry is None else entry.raw_key
