"""Land one micro-batch: into its tables once, counted from the files, noted in the journal."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from twinstream.spark.errors import CheckpointError, JournalError
from twinstream.spark.landing.land_job import LandJob, cores_of, ranges_of
from twinstream.spark.client.driver_client import Leader
from twinstream.spark.pipeline.batch_log import BatchEntry, BatchLog
from twinstream.spark.pipeline.checkpoint import Checkpoint
from twinstream.spark.pipeline.config import SourceConfig
from twinstream.spark.pipeline.identity import Identity
from twinstream.spark.pipeline.landed import possible_tables
from twinstream.spark.pipeline.sink import Sink
from twinstream.spark.landing.staging import Seqs, seqs_in
from twinstream.spark.landing.tables import BatchWriter, put_landed, refuse_taken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchLander"]


class _Held(Exception):
    """A batch was not begun, because its query is to end."""


@frozen
class _Writer:
    name: str
    id: str


class BatchLander:
    """The function that Spark calls for each micro-batch of one source.

    Called again for a batch that was interrupted, it finishes that batch: Spark gives the same
    range, tables that have the batch are left alone. ``landed`` is told of every batch.
    """

    def __init__(
        self,
        source: SourceConfig,
        identity: Identity,
        checkpoint: Checkpoint,
        log: BatchLog,
        sink: Sink,
        landed: Callable[[BatchEntry], None],
    ) -> None:
        self._source: Final = source
        self._identity: Final = identity
        self._checkpoint: Final = checkpoint
        self._log: Final = log
        self._sink: Final = sink
        self._landed: Final = landed
        self._leader: Final = Leader(source.source_options)
        self.failure: Exception | None = None
        """The error of the last batch: Spark itself passes only its text on."""
        self._held = False

    def __call__(self, rows: DataFrame, spark_batch: int) -> None:
        """Land a batch. Raises what went wrong.

        Of ``rows`` only the session is used: they would bring each message through Java.
        """
        if self._held:
            raise _Held("somebody asked to stop: the next run lands this batch")
        try:
            self._land(rows.sparkSession, spark_batch)
        except Exception as error:
            self.failure = error
            raise

    def hold(self) -> None:
        """Begin no further batch: the query ends instead, when Spark has committed the last one."""
        self._held = True

    def close(self) -> None:
        """Close the connection."""
        self._leader.close()

    def _land(self, spark: SparkSession, spark_batch: int) -> None:
        started = time.monotonic()
        entry = self._plan(spark_batch)
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
        """Let Spark's tasks write the files, and put them into the tables of the source.

        Returns how many messages the tasks found.
        """
        options = self._source.source_options
        job = LandJob(options, self._source.tables, tables.folder, entry.batch)
        last = self._log.known(entry.batch - 1)
        before = None if last is None else last.mark
        ranges = ranges_of(
            self._leader, options, entry.start, entry.position, before, cores_of(spark)
        )
        landed = job.run(spark, ranges)
        put_landed(tables, job, landed)
        return sum(each.rows for each in landed)

    def _plan(self, spark_batch: int) -> BatchEntry:
        """Note the bounds of the batch, or find them noted."""
        bounds = self._checkpoint.bounds(spark_batch, self._identity.origin)
        entry = BatchEntry(
            batch=self._identity.base + spark_batch,
            start=bounds.start,
            end=bounds.end.next,
            created=bounds.end.created,
            mark=bounds.end.mark,
            query_id=self._checkpoint.query_id() or "",
            began=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        known, last = self._log.known(entry.batch), self._log.last()
        is_new = last is None or entry.batch > last.batch
        if known is None and last is not None and not is_new:
            raise self._other(entry, last)
        if known is None or (is_new and known.query_id != entry.query_id):
            # In the second case it was begun with a lost checkpoint, and its rows were removed.
            owner = f"source {self._source.name}"
            refuse_taken(self._sink.reaches, possible_tables(self._source), entry.batch, owner)
            self._log.begin(entry)
        elif (known.start, known.end, known.created) != (entry.start, entry.end, entry.created):
            raise self._other(entry, known)
        return entry

    def _other(self, entry: BatchEntry, known: BatchEntry) -> CheckpointError:
        return CheckpointError(
            f"source {self._source.name}: the checkpoint plans batch {entry.batch} as sequences"
            f" {entry.start} to {entry.end - 1}, the journal holds batch {known.batch} with"
            f" {known.start} to {known.end - 1}: the checkpoint was put back to an earlier"
            " state. Put back the newer one, or go on behind the journal with"
            " twinstream pipeline run --recover"
        )

    def _counted(self, entry: BatchEntry, tables: BatchWriter, found: int) -> BatchEntry:
        """Read the sequences back from the files: each message is there once, in its range."""
        seqs = seqs_in(tables.written, self._source.seq_column)
        self._check(entry, seqs, found)
        return entry.counted(seqs, tables.written, self._source.dead_letters)

    def _check(self, entry: BatchEntry, seqs: Seqs, found: int) -> None:
        inside = not seqs.count or (entry.start <= seqs.first and seqs.last < entry.end)
        if seqs.count != seqs.distinct or seqs.count < found or not inside:
            raise JournalError(
                f"batch {entry.batch} of source {self._source.name} ({entry.start} to"
                f" {entry.end - 1}) has {seqs.count} rows of {seqs.distinct} sequences from"
                f" {seqs.first} to {seqs.last} in its files, and the stream {found} messages:"
                " it was begun with another schema, which has to finish it, or something else"
                " writes to the tables"
            )
