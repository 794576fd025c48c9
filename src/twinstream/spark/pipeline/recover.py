"""Go on behind what is landed when a checkpoint was lost, or when a stream is accepted as a copy.

The journal says which batches are in the tables. Rows of a batch that is not in the journal are
removed, and a new checkpoint begins behind the last batch.
"""

from __future__ import annotations

import time

from attrs import evolve

from twinstream.spark.errors import DataLossError, JournalError
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.source.stream_mark import TimeAt
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stream_identity import why_other
from twinstream.spark.pipeline.batch_log import BatchEntry, BatchLog
from twinstream.spark.pipeline.checkpoint import Checkpoint
from twinstream.spark.pipeline.config import SourceConfig
from twinstream.spark.pipeline.folders import SourceFolder
from twinstream.spark.pipeline.identity import Identity
from twinstream.spark.pipeline.landed import possible_tables
from twinstream.spark.pipeline.sink import Sink
from twinstream.spark.source.stream_state import StreamState

__all__ = ["accepted", "recovered"]


def recovered(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    time_at: TimeAt,
) -> Identity:
    """Return the identity to go on with; the same one when nothing is wrong.

    Raises `DataLossError` when the stream was made anew since, or removed what was not landed,
    unless ``failOnDataLoss`` is false, and `JournalError` when the journal is older than the
    tables.
    """
    last = BatchLog(folder.journal).last()
    if _agrees(identity, Checkpoint(folder.checkpoint, source.stream), last):
        return identity
    after = -1 if last is None else last.batch
    stands = Position(identity.origin, identity.created) if last is None else last.position
    strict = source.source_options.fail_on_data_loss
    # Checked before anything is removed: what has left the stream could not be landed again.
    origin = start_behind(state, stands, time_at, strict=strict)
    return _renewed(source, identity, folder, sink, state, origin, after + 1)


def accepted(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    time_at: TimeAt,
) -> Identity:
    """Return the identity to go on with on a stream that the user accepts as a copy.

    It is the same one when the stream shows by itself that it is the one that was landed. Otherwise
    a line goes into the journal. Raises `DataLossError` when the stream shows that it is no copy.
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


def _renewed(
    source: SourceConfig,
    identity: Identity,
    folder: SourceFolder,
    sink: Sink,
    state: StreamState,
    origin: int,
    base: int,
) -> Identity:
    """Return the identity for a new checkpoint, with the next batch and where it begins."""
    _remove_unfinished(source, sink, base)
    if folder.checkpoint.exists():
        folder.checkpoint.rename(folder.path / f"checkpoint.{time.time_ns()}")
    return identity.renewed(origin=origin, base=base, created=state.created).save(folder)


def _remove_unfinished(source: SourceConfig, sink: Sink, number: int) -> None:
    """Remove the rows of batch ``number``. Raises `JournalError` for tables with later ones.

    A batch begins only when the one before is in the journal, so only one can be unfinished.
    """
    taken = [table for table in possible_tables(source) if sink.reaches(table, number)]
    for table in taken:
        if sink.reaches(table, number + 1):
            raise JournalError(
                f"table {table} has rows of batch {number + 1} or later, and the journal of source"
                f" {source.name} ends before batch {number}: it was put back to an earlier state,"
                " or they are of another source; put back the newer journal, or land into a new"
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
