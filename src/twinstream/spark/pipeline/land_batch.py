"""Land one micro-batch exactly once: write its files, count their rows, add a journal entry."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from twinstream.spark.errors import CheckpointError, JournalError
from twinstream.spark.landing.land_job import LandJob, ranges_of
from twinstream.spark.landing.landed_seqs import Seqs, seqs_in
from twinstream.spark.landing.tables import BatchWriter, put_landed, refuse_taken
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.batch_log import BatchEntry, BatchLog
from twinstream.spark.pipeline.state.checkpoint import Checkpoint
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.pipeline.tables.table_lock import TableLock
from twinstream.spark.running import slots_of
from twinstream.spark.source.driver_client import Leader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchLander"]


class _Stopping(Exception):
    """Raised when Spark calls `BatchLander` after a stop request, to end the query."""


@frozen
class _Writer:
    name: str
    id: str


class BatchLander:
    """A callable that lands a micro-batch of one source. Spark calls it for each micro-batch.

    After an interruption, Spark calls it again for the same batch, and the bounds in the checkpoint
    are the same. Tables that already have the batch are not changed. The callback `landed`
    receives the journal entry of every batch.
    """

    def __init__(
        self,
        source: SourceConfig,
        identity: Identity,
        checkpoint: Checkpoint,
        log: BatchLog,
        sink: Sink,
        lock: TableLock,
        landed: Callable[[BatchEntry], None],
    ) -> None:
        self._source: Final = source
        self._identity: Final = identity
        self._checkpoint: Final = checkpoint
        self._log: Final = log
        self._sink: Final = sink
        self._lock: Final = lock
        self._landed: Final = landed
        self._leader: Final = Leader(source.source_options)
        self.failure: Exception | None = None
        """The error of the last failed batch, or `None`. Spark itself reports only its text."""
        self._is_stopping = False
        self._has_looked = False

    def __call__(self, rows: DataFrame, spark_batch: int) -> None:
        """Land a batch.

        An error is stored in `failure` and raised again. Only the session of `rows` is used,
        because reading `rows` would pass each message through Java. The tasks of the landing read
        the messages from the stream.
        """
        try:
            with self._lock.shared(lambda: self._is_stopping) as granted:
                if self._is_stopping or not granted:
                    raise _Stopping("a stop was requested: the next run lands this batch")
                self._land(rows.sparkSession, spark_batch)
        except _Stopping:
            raise
        except Exception as error:
            self.failure = error
            raise

    def hold(self) -> None:
        """Begin no further batch. The query ends once Spark has committed the current batch."""
        self._is_stopping = True

    def close(self) -> None:
        """Close the connection to the server."""
        self._leader.close()

    def _land(self, spark: SparkSession, spark_batch: int) -> None:
        started = time.monotonic()
        entry = self.plan(spark_batch)
        finished = self._log.finished(entry.batch)
        if finished is not None and finished.query_id == entry.query_id:
            # An earlier run landed this batch and ended before Spark committed it. The files may
            # have been compacted since, so they are not written again.
            self._landed(finished)
            return
        tables = self._sink.batch(entry.batch, _Writer(self._source.name, self._identity.id))
        try:
            found = self._write(spark, entry, tables)
            entry = self._counted(entry, tables, found)
        finally:
            tables.close()
        (state,) = self._leader.states()
        entry = evolve(
            entry,
            backlog=max(0, state.next - entry.end),
            seconds=round(time.monotonic() - started, 3),
        )
        self._log.landed(entry)
        self._landed(entry)

    def _write(self, spark: SparkSession, entry: BatchEntry, tables: BatchWriter) -> int:
        """Let Spark's tasks write the files, and add them to the tables of the source.

        Returns the number of messages that the tasks read.
        """
        options = evolve(self._source.source_options, slots=slots_of(spark))
        job = LandJob(options, self._source.tables, tables.folder, entry.batch)
        last = self._log.known(entry.batch - 1)
        before = None if last is None else last.mark
        ranges = ranges_of(self._leader, options, entry.start, entry.position, before)
        landed = job.run(spark, ranges)
        put_landed(tables, job, landed)
        return sum(each.rows for each in landed)

    def plan(self, spark_batch: int) -> BatchEntry:
        """Return an entry with the bounds of a batch.

        If the journal does not have the batch, the entry is added to the journal. Raises
        `CheckpointError` if the journal has other bounds for the batch, and `JournalError` if a
        table already has rows of a batch that is not in the journal.
        """
        bounds = self._checkpoint.bounds(spark_batch, self._identity.origin)
        entry = BatchEntry(
            batch=self._identity.base + spark_batch,
            start=bounds.start,
            end=bounds.end.next,
            created=bounds.end.created,
            mark=bounds.end.mark,
            filter=bounds.end.filter,
            query_id=self._checkpoint.query_id() or "",
            began=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        known, last = self._log.known(entry.batch), self._log.last()
        is_new = last is None or entry.batch > last.batch
        if known is None and last is not None and not is_new:
            raise self._other(entry, last)
        if known is None or (is_new and known.query_id != entry.query_id):
            # If the journal has the batch with another query ID, an earlier checkpoint planned the
            # batch. Its rows were removed when the new checkpoint began.
            self._refuse_taken(entry.batch)
            self._log.begin(entry)
        elif (known.start, known.end, known.created) != (entry.start, entry.end, entry.created):
            raise self._other(entry, known)
        return entry

    def _refuse_taken(self, batch: int) -> None:
        """Raise `JournalError` if a table already has this batch.

        The first call also raises the error for later batches. Later calls check only this batch,
        because since the first call only this process has written to the tables.
        """
        look = self._sink.holds if self._has_looked else self._sink.reaches
        owner = f"source {self._source.name}"
        refuse_taken(look, possible_tables(self._source), batch, owner)
        self._has_looked = True

    def _other(self, entry: BatchEntry, known: BatchEntry) -> CheckpointError:
        return CheckpointError(
            f"source {self._source.name}: the checkpoint plans batch {entry.batch} as sequences"
            f" {entry.start} to {entry.end - 1}, the journal has batch {known.batch} with"
            f" {known.start} to {known.end - 1}: the checkpoint was restored to an earlier state."
            " Restore the newer one, or continue after the batches of the journal with"
            " twinstream pipeline run --recover"
        )

    def _counted(self, entry: BatchEntry, tables: BatchWriter, found: int) -> BatchEntry:
        """Count the rows in the files of the batch, and return the entry with the numbers.

        `found` is the number of messages that the tasks read. Raises `JournalError` if the files
        have fewer rows, two rows of the same sequence, or sequences outside the batch.
        """
        seqs = seqs_in(tables.written, self._source.seq_column, found)
        self._check(entry, seqs, found)
        return entry.counted(seqs, tables.written, self._source.dead_letters)

    def _check(self, entry: BatchEntry, seqs: Seqs, found: int) -> None:
        inside = not seqs.count or (entry.start <= seqs.first and seqs.last < entry.end)
        if seqs.count != seqs.distinct or seqs.count < found or not inside:
            raise JournalError(
                f"batch {entry.batch} of source {self._source.name} ({entry.start} to"
                f" {entry.end - 1}) has {seqs.count} rows of {seqs.distinct} sequences from"
                f" {seqs.first} to {seqs.last} in its files, and the stream {found} messages:"
                " either it was begun with another schema (finish it with that schema), or another"
                " program writes to the tables"
            )
