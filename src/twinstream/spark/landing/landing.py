"""Land one batch of one stream: plan it, write its files, count their rows, commit it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from twinstream.lake.stream_mark import Mark
from twinstream.spark.errors import JournalError, OptionError
from twinstream.spark.landing.batch_folders import reaches
from twinstream.spark.landing.journal import Journal, Plan
from twinstream.spark.landing.land_job import LandJob, ranges_of
from twinstream.spark.landing.landed_seqs import seqs_in
from twinstream.spark.landing.lock import locked
from twinstream.spark.landing.report import LandReport, TableReport
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.landing.spark_engine import SparkEngine
from twinstream.spark.landing.split_tables import DEAD_LETTERS, TableNames
from twinstream.spark.landing.staging import STAGING, Written, remove_attempts
from twinstream.spark.landing.tables import ParquetBatch, put_landed, refuse_taken
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.filters import same_filter
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Landing"]


@frozen
class Landing:
    """The landing of one stream in tables below the folder `root`, one batch per run.

    `table` is the name of the table for all messages that are neither dead letters nor events.
    """

    options: SourceOptions
    root: Path
    table: str

    def run(self, spark: SparkSession) -> LandReport:
        """Finish the unfinished batch, or else land the next batch, and return its report.

        Raises `PipelineBusy` while another process lands the stream.
        """
        journal = Journal(self.root, self._stream)
        with locked(journal.lock, self.root, f"a landing of {self._stream}"):
            return self._run(spark, journal)

    def _run(self, spark: SparkSession, journal: Journal) -> LandReport:
        begun, last = journal.plan(), journal.last()
        self._refuse_filter(begun or last)
        plan = begun or self._next_plan(last)
        if plan.end <= plan.start:
            return self._nothing(plan)
        if begun is None:
            refuse_taken(self._reaches, self._tables, plan.batch_id, f"stream {self._stream}")
            journal.begin(plan)
        remove_attempts(self.root / STAGING, self._stream)
        tables = ParquetBatch(self.root, self.root / STAGING, plan.batch_id, self._stream)
        try:
            found = self._write(spark, plan, tables, None if last is None else last.mark)
            report = self._verified(plan, tables, found)
        finally:
            tables.close()
        journal.commit(plan, report)
        return report

    @property
    def _stream(self) -> str:
        name, *others = self.options.streams
        if others:
            raise OptionError("stream", "a landing reads one stream; call it once for each stream")
        return name

    @property
    def _dead_letters(self) -> str:
        return f"{DEAD_LETTERS}/source={self._stream}"

    @property
    def _names(self) -> TableNames:
        return TableNames(table=self.table, dead_letters=self._dead_letters)

    @property
    def _tables(self) -> list[str]:
        return self._names.possible(self.options.value_format)

    def _reaches(self, table: str, number: int) -> bool:
        return reaches(self.root / table, number)

    @property
    def _filter(self) -> str:
        return ",".join(self.options.subjects)

    def _next_plan(self, last: Plan | None) -> Plan:
        with Leader(self.options) as leader:
            (state,) = leader.states()
            start = self._start(leader, state, last)
        return Plan(
            batch_id=0 if last is None else last.batch_id + 1,
            created=state.created,
            start=start,
            end=state.next,
            mark=state.mark,
            filter=self._filter,
        )

    def _refuse_filter(self, before: Plan | None) -> None:
        """Raise `OptionError` if the filter differs from that of the previous plan, `before`.

        Messages that the old filter skipped would never be landed. With `failOnDataLoss=false`,
        the change is accepted.
        """
        if before is None or before.filter is None or same_filter(before.filter, self._filter):
            return
        if self.options.fail_on_data_loss:
            raise OptionError(
                "subject",
                f"the journal of stream {self._stream} was created with the filter"
                f" {before.filter or '>'!r}, now it is {self._filter or '>'!r}; messages that the"
                " old filter skipped would never be landed: land into a new folder, or set"
                " failOnDataLoss=false to continue with the new one",
            )

    def _start(self, leader: Leader, state: StreamState, last: Plan | None) -> int:
        if last is None:
            bound = self.options.start
            if bound is None:
                return state.first
            # Check the start before the plan is written. A planned batch that cannot be read would
            # block all later batches.
            return Continuity(self.options, leader.time_at).first(bound, state, leader.seq_at)
        strict = self.options.fail_on_data_loss
        return start_behind(state, last.position, leader.time_at, strict=strict)

    def _write(
        self, spark: SparkSession, plan: Plan, tables: ParquetBatch, before: Mark | None
    ) -> int:
        """Write the batch to its tables, and return the number of messages that the tasks read."""
        engine = SparkEngine(spark)
        options = evolve(self.options, slots=engine.slots)
        job = LandJob(options, self._names, tables.folder)
        with Leader(options) as leader:
            ranges = ranges_of(leader, options, plan.start, plan.position, before)
        reports = job.run(engine, ranges)
        put_landed(tables, job, reports)
        return sum(each.rows for each in reports)

    def _verified(self, plan: Plan, tables: ParquetBatch, found: int) -> LandReport:
        """Count the rows in the files of the batch, and return the report.

        `found` is the number of messages that the tasks read. Raises `JournalError` if the files
        have fewer rows, or two rows of the same sequence.
        """
        column = "seq" if self.options.value_format == "raw" else "_seq"
        seqs = seqs_in(tables.written, column, found)
        reports = tuple(self._report(each) for each in tables.written)
        dead = sum(each.rows for each in reports if each.name == self._dead_letters)
        if seqs.count != seqs.distinct or seqs.count < found:
            raise JournalError(
                f"batch {plan.batch_id} of {self._stream} has {seqs.count} rows of"
                f" {seqs.distinct} sequences, and the stream {found} messages: either it was begun"
                " with another schema (finish it with that schema), or its folders have files of"
                " another writer"
            )
        return LandReport(
            stream=self._stream,
            path=str(self.root),
            batch_id=plan.batch_id,
            start=plan.start,
            end=plan.end,
            messages=seqs.count,
            rows=seqs.count - dead,
            dead_letters=dead,
            distinct_seqs=seqs.distinct,
            first_seq=seqs.first,
            last_seq=seqs.last,
            tables=reports,
        )

    def _report(self, each: Written) -> TableReport:
        path = str(self.root / each.table)
        return TableReport(name=each.table, path=path, rows=each.rows, files=len(each.files))

    def _nothing(self, plan: Plan) -> LandReport:
        return LandReport(
            stream=self._stream,
            path=str(self.root),
            batch_id=-1,
            start=plan.start,
            end=plan.end,
            messages=0,
            rows=0,
            dead_letters=0,
            distinct_seqs=0,
            first_seq=0,
            last_seq=0,
        )
