"""Continue after the landed batches with a new checkpoint.

A new checkpoint is needed in three cases: the old checkpoint was lost or does not match the
journal, the user accepts a stream as a copy of the landed stream, or the user has changed the
subjects of a source.

The journal contains the batches that are in the tables. The new checkpoint begins after the last
batch of the journal. If a later batch was begun, its rows are removed from the tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import evolve

from twinstream.spark.errors import CheckpointError, DataLossError, JournalError
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.settings.folders import SourceFolder
from twinstream.spark.pipeline.state.batch_log import BatchEntry, BatchLog
from twinstream.spark.pipeline.state.checkpoint import Checkpoint
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.source.filters import same_filter
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.source.stream_mark import TimeAt
from twinstream.spark.source.stream_state import StreamState

__all__ = ["accepted", "check_subjects", "recovered", "refiltered"]


def recovered(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    time_at: TimeAt,
) -> Identity:
    """Return `identity`, or a new identity if the checkpoint does not match the journal.

    With a new identity, the source continues after the last batch of the journal.

    Raises:
        DataLossError: if the stream was re-created or removed messages that were not landed, unless
            `failOnDataLoss` is false.
        JournalError: if the journal is older than the tables.
    """
    last = BatchLog(folder.journal).last()
    if _agrees(identity, Checkpoint(folder.checkpoint, source.stream), last):
        return identity
    after = -1 if last is None else last.batch
    position = _landed_position(identity, last)
    strict = source.source_options.fail_on_data_loss
    # Check the stream before rows are removed. If the stream has lost the messages of these rows,
    # they could not be landed again.
    origin = start_behind(state, position, time_at, strict=strict)
    return _renewed(source, identity, folder, sink, state, origin, after + 1)


def accepted(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    time_at: TimeAt,
) -> Identity:
    """Return the identity with which to continue on a stream that the user accepts as a copy.

    The result is `identity` if no batch is landed, or if the stream is the landed stream or has
    the message that the mark of the last batch describes. Otherwise the result is a new identity,
    and the last batch is appended to the journal again, with the creation time of the copy. Raises
    `DataLossError` if the stream cannot be a copy.
    """
    log = BatchLog(folder.journal)
    last = log.last()
    if last is None or (reason := why_other(last.position, state, time_at)) is None:
        return identity
    is_gone = last.mark is None or time_at(state.name, last.mark.seq) is None
    if last.created == state.created or last.end > state.next or not is_gone:
        raise DataLossError(
            f"stream {state.name} cannot be accepted as a copy of the one that was landed up to"
            f" sequence {last.end - 1}: {reason}; it ends at {state.next - 1}"
        )
    log.accepted(evolve(last, created=state.created, mark=state.mark))
    return _renewed(source, identity, folder, sink, state, last.end, last.batch + 1)


def refiltered(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    time_at: TimeAt,
    seq_from: Callable[[str, int], int | None],
) -> Identity:
    """Return `identity`, or a new identity if the subjects of the source were changed.

    Messages that the old subjects skipped are not landed. `seq_from` returns the sequence of the
    first message, at or after a given sequence, that the new subjects match, or `None` if there
    is none. Raises `CheckpointError` if a purge would remove messages that the old subjects
    skipped. Raises `DataLossError`, unless `failOnDataLoss` is false, if the stream was
    re-created, restored or has lost messages.
    """
    checkpoint, last = Checkpoint(folder.checkpoint, source.stream), BatchLog(folder.journal).last()
    before = _filter_of(identity, checkpoint, last)
    unchanged = before is None or same_filter(before, source.filter)
    if unchanged or not _agrees(identity, checkpoint, last):
        return identity
    strict = source.source_options.fail_on_data_loss
    origin = start_behind(state, _landed_position(identity, last), time_at, strict=strict)
    first = seq_from(state.name, state.first) if source.commit == "purge" else None
    if first is not None and first < origin:
        raise CheckpointError(
            f"source {source.name}: stream {state.name} still has message {first}, which the new"
            f" subjects match, below {origin}, up to which the source has landed: with"
            ' commit = "purge" it would be removed, landed or not; remove it by hand, or set'
            ' commit = "none"'
        )
    number = 0 if last is None else last.batch + 1
    renewed = _renewed(source, identity, folder, sink, state, origin, number)
    return evolve(renewed, filter=source.filter).save(folder)


def check_subjects(source: SourceConfig, identity: Identity, folder: SourceFolder) -> None:
    """Raise `CheckpointError` if a source landed other subjects before.

    Messages that the earlier subjects skipped would never be landed. With
    `failOnDataLoss = false`, this is accepted.
    """
    checkpoint = Checkpoint(folder.checkpoint, source.stream)
    before = _filter_of(identity, checkpoint, BatchLog(folder.journal).last())
    unchanged = before is None or same_filter(before, source.filter)
    if unchanged or not source.source_options.fail_on_data_loss:
        return
    raise CheckpointError(
        f"source {source.name} landed the subjects {before or '>'} before, now it names"
        f" {source.filter or '>'}: messages that were skipped would not be landed. Name the"
        " subjects as before, or continue after the landed batches with the new ones, with"
        " twinstream pipeline run --accept-subjects; then twinstream pipeline replay lands the"
        " messages that earlier batches skipped"
    )


def _filter_of(identity: Identity, checkpoint: Checkpoint, last: BatchEntry | None) -> str | None:
    """Return the subjects that a source has landed so far, or `None` if they are unknown.

    The text has the subjects separated by commas; it is empty for all subjects.
    """
    begun = checkpoint.last_begun()
    if begun >= 0:
        return checkpoint.bounds(begun, identity.origin).end.filter
    return identity.filter if identity.filter is not None or last is None else last.filter


def _landed_position(identity: Identity, last: BatchEntry | None) -> Position:
    return Position(identity.origin, identity.created) if last is None else last.position


def _renewed(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    origin: int,
    base: int,
) -> Identity:
    """Store and return an identity for a new checkpoint.

    `base` is the number of the next batch, and `origin` is its first sequence. Rows that batch
    `base` already has in the tables are removed, and the folder of the old checkpoint is renamed.
    """
    _remove_unfinished(source, sink, base)
    if folder.checkpoint.exists():
        folder.checkpoint.rename(folder.path / f"checkpoint.{time.time_ns()}")
    return identity.renewed(origin=origin, base=base, created=state.created).save(folder)


def _remove_unfinished(source: SourceConfig, sink: Sink, number: int) -> None:
    """Remove the rows of the unfinished batch `number` from the tables.

    A batch begins only when the journal has the previous batch, so at most one batch is unfinished.
    Raises `JournalError` if a table has rows of a later batch.
    """
    taken = [table for table in possible_tables(source) if sink.reaches(table, number)]
    for table in taken:
        if sink.reaches(table, number + 1):
            raise JournalError(
                f"table {table} has rows of batch {number + 1} or later, and the journal of source"
                f" {source.name} ends before batch {number}: it was restored to an earlier state,"
                " or the rows are of another source; restore the newer journal, or land into a new"
                " folder"
            )
    for table in taken:
        sink.replace(table, number, ())


def _agrees(identity: Identity, checkpoint: Checkpoint, last: BatchEntry | None) -> bool:
    found = checkpoint.query_id()
    if found is None:
        return last is None and identity.query_id is None
    newest = identity.base + checkpoint.last_begun()
    return found == identity.query_id and (last is None or newest >= last.batch)
