"""Land one batch of one stream: plan it, write its files, count their rows, commit it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from twinstream.lake.engine import Engine
from twinstream.lake.entry import DEAD_LETTERS, BatchEntry
from twinstream.lake.journal import Journal
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.local_store import LocalStore
from twinstream.lake.owners import claim
from twinstream.lake.plan import Plan
from twinstream.spark.errors import JournalError, OptionError
from twinstream.spark.landing.batch_folders import reaches
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.lock import locked
from twinstream.spark.landing.report import LandReport, TableReport
from twinstream.spark.landing.resume import start_behind
from twinstream.spark.landing.spark_engine import SparkEngine
from twinstream.spark.landing.split_tables import TableNames
from twinstream.spark.landing.staging import STAGING, remove_attempts
from twinstream.spark.landing.tables import ParquetBatch, refuse_taken
from twinstream.spark.landing.write_batch import PlannedBatch, position_of, schema_digest
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.filters import same_filter
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import partition_count
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JOURNAL", "Landing"]

JOURNAL: Final = "journal"
"""Name of the folder with the journals of the streams."""


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
        folder = self.root / JOURNAL / self.stream
        _refuse_earlier(folder)
        with (
            locked(folder / "_lock", self.root, f"a landing of {self.stream}"),
            Leader(self.options) as leader,
        ):
            journal = Journal(LocalStore(self.root / JOURNAL), self.stream)
            begun, last = journal.unfinished(), journal.last()
            self._refuse_filter(begun or last)
            work = _LandingWork(self, SparkEngine(spark), leader)
            plan = begun or work.next_plan(journal.newest() + 1, last)
            if plan.end <= plan.start:
                return self._empty_report(plan)
            # The lock is held, so no other process has files there.
            remove_attempts(self.root / STAGING, self.stream)
            return self._report(BatchLander(journal, work).land(plan))

    @property
    def names(self) -> TableNames:
        """The names of the tables."""
        dead_letters = f"{DEAD_LETTERS}/source={self.stream}"
        return TableNames(table=self.table, dead_letters=dead_letters)

    @property
    def stream(self) -> str:
        """The name of the stream. Raises `OptionError` if the options name several."""
        name, *others = self.options.streams
        if others:
            raise OptionError("stream", "a landing reads one stream; call it once for each stream")
        return name

    @property
    def filter(self) -> str:
        """The subjects, separated by commas; empty for all subjects."""
        return ",".join(self.options.subjects)

    def _refuse_filter(self, before: Plan | BatchEntry | None) -> None:
        """Raise `OptionError` if the filter differs from that of the previous plan, `before`.

        Messages that the old filter skipped would never be landed. With `failOnDataLoss=false`,
        the change is accepted.
        """
        if before is None or same_filter(before.filter, self.filter):
            return
        if self.options.fail_on_data_loss:
            raise OptionError(
                "subject",
                f"the journal of stream {self.stream} was created with the filter"
                f" {before.filter or '>'!r}, now it is {self.filter or '>'!r}; messages that the"
                " old filter skipped would never be landed: land into a new folder, or set"
                " failOnDataLoss=false to continue with the new one",
            )

    def _report(self, entry: BatchEntry) -> LandReport:
        """Return the report of a landed batch.

        A batch has one row per message, so it has as many distinct sequences as messages.
        """
        tables = tuple(
            TableReport(name=name, path=str(self.root / name), rows=each.rows, files=each.files)
            for name, each in entry.tables.items()
        )
        return LandReport(
            stream=self.stream,
            path=str(self.root),
            batch_id=entry.batch,
            start=entry.start,
            end=entry.end,
            messages=entry.messages,
            rows=entry.rows,
            dead_letters=entry.dead_letters,
            distinct_seqs=entry.messages,
            first_seq=entry.first_seq,
            last_seq=entry.last_seq,
            tables=tables,
        )

    def _empty_report(self, plan: Plan) -> LandReport:
        """Return the report of a run that found no messages. The number of its batch is -1."""
        return LandReport(
            stream=self.stream,
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


@frozen
class _LandingWork:
    """What a landing does for its batch."""

    landing: Landing
    engine: Engine
    leader: Leader

    def next_plan(self, batch: int, last: BatchEntry | None) -> Plan:
        """Return the plan of all messages behind the last batch. It may have no sequences."""
        (state,) = self.leader.states()
        start, options = self._start(state, last), self._options
        return Plan(
            batch=batch,
            start=start,
            end=state.next,
            created=state.created,
            mark=state.mark,
            filter=self.landing.filter,
            parts=partition_count(options, state.next - start),
            schema=schema_digest(options),
        )

    def refuse_taken(self, batch: int) -> None:
        """Raise `JournalError` if a table has rows of a batch with this number or a later one."""
        root, stream = self.landing.root, self.landing.stream
        tables = tuple(self.landing.names.possible(self.landing.options.value_format))
        for table in tables:
            claim(LocalStore(root / JOURNAL), table, f"stream {stream}")
        refuse_taken(lambda table, at: reaches(root / table, at), tables, batch, f"stream {stream}")

    def land(self, plan: Plan, last: BatchEntry | None) -> BatchEntry:
        """Let tasks write the files of a plan, and add them to the tables that lack the batch."""
        root, stream = self.landing.root, self.landing.stream
        tables = ParquetBatch(root, root / STAGING, plan.batch, stream)
        try:
            job = LandJob(self._options, self.landing.names, tables.folder)
            before = None if last is None else last.mark
            batch = PlannedBatch(plan, before, job, tables, f"stream {stream}")
            return batch.land(self.leader, self.engine)
        finally:
            tables.close()

    @property
    def _options(self) -> SourceOptions:
        return evolve(self.landing.options, slots=self.engine.slots)

    def _start(self, state: StreamState, last: BatchEntry | None) -> int:
        """Return the first sequence of the batch after `last`, or of the first batch."""
        options, leader = self.landing.options, self.leader
        if last is None:
            bound = options.start
            if bound is None:
                return state.first
            # Check the start before the plan is written. A planned batch that cannot be read would
            # block all later batches.
            return Continuity(options, leader.time_at).first(bound, state, leader.seq_at)
        strict = options.fail_on_data_loss
        return start_behind(state, position_of(last), leader.time_at, strict=strict)


def _refuse_earlier(folder: Path) -> None:
    """Raise `JournalError` if a folder has a journal of an earlier layout."""
    for file in folder.glob("batch_id=*.json"):
        raise JournalError(
            f"{file} is of an earlier layout of the journal, from which this release cannot"
            " continue: land into a new folder"
        )
