"""Undo the changes of a bucket: in one atomic batch, or in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from js_async.kv.bucket_streams import BucketStreams
from js_async.kv.writes import BucketWrites
from js_async.publish.atomic_batch import AtomicBatch
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.publish.limits import BATCH_MESSAGES
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    OutcomeUnknown,
    RevisionMismatch,
    TwinstreamError,
    UnsuitableSettings,
    WrongLastSequence,
)
from twinstream.errors.kv import raise_for_bucket
from twinstream.records.entry import DELETED, Entry, may_be_marker
from twinstream.records.guarantee_gap import GuaranteeGap
from twinstream.records.headers import Headers, HeaderValues
from twinstream.records.key_change import KeyChange, KeyChanges

__all__ = ["revert"]

V = TypeVar("V")


async def revert(
    place: BucketStreams,
    writes: BucketWrites,
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
        return await _one_by_one(writes, undone, timeout, in_parts)
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
        except TwinstreamError as error:
            _note_progress(error, at, len(left), changes, f"the batch from key {part[0].key!r} on")
            raise
    return left


async def _batch(
    place: BucketStreams, stream: str, changes: Sequence[KeyChange[Any]], timeout: float
) -> None:
    """Store all changes in one atomic batch.

    The batch fails as a whole if a key was written since its revision was read.
    """
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
    changes: Sequence[KeyChange[V]],
    timeout: float,
    in_parts: bool,
) -> list[KeyChange[V]]:
    """Undo changes by conditional writes; return those whose keys were written since.

    Without `in_parts`, raise the refusal of the only write.
    """
    left: list[KeyChange[V]] = []
    for at, change in enumerate(changes):
        (data, headers), revision, key = _wanted(change), _revision(change), _key(change)
        try:
            # With revision 0, the server refuses the write even if the key has only a marker.
            await writes.update(key, data, revision, headers=headers, timeout=timeout)
        except RevisionMismatch:
            if not in_parts:
                raise
            left.append(change)
        except TwinstreamError as error:
            _note_progress(error, at, len(left), changes, f"key {change.key!r}")
            raise
    return left


def _note_progress(
    error: TwinstreamError, at: int, left: int, changes: Sequence[KeyChange[V]], next_one: str
) -> None:
    """Note on an error how many of the changes were undone, and what is next.

    The writes of the changes before `at` are done, except for `left` ones that were refused.
    """
    text = f"{at - left} of {len(changes)} changes were undone"
    if left:
        text += f", and {left} left because another client has written a key since"
    if isinstance(error, OutcomeUnknown | ConnectionLost | TimeoutError):
        text += f"; it is unknown whether {next_one} was undone"
    else:
        text += f"; the next is {next_one}"
    error.add_note(text)


def _wanted(change: KeyChange[V]) -> tuple[bytes, HeaderValues | None]:
    """Return value and headers before a change, or an empty value and the headers of a marker."""
    before = change.before
    if before is not None and before.is_value:
        return before.raw_value, _user_headers(before.headers)
    return b"", DELETED


def _user_headers(headers: Headers) -> HeaderValues | None:
    """Return the headers that have no meaning for the server, each with all its values."""
    own: dict[str, list[str]] = {}
    for name, value in headers.pairs:
        if not name.lower().startswith("nats-") and not may_be_marker(name.encode()):
            own.setdefault(name, []).append(value)
    return own or None


def _revision(change: KeyChange[V]) -> int:
    """Return the revision of a key after its change; 0 if none is stored."""
    return 0 if change.after is None else change.after.revision


def _key(change: KeyChange[Any]) -> str:
    entry: Entry[Any] | None = change.after or change.before
    return change.key if entry is None else entry.raw_key
