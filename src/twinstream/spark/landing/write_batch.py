"""Land the rows of one plan: tasks write its files, and the tables that lack the batch get them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import evolve, frozen

from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.response import read_json
from twinstream.lake.engine import Engine
from twinstream.lake.entry import BatchEntry, TableEntry
from twinstream.lake.plan import Plan
from twinstream.lake.stream_mark import Mark
from twinstream.lake.task_report import TaskReport, files_by_table
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.land_job import LandJob, ranges_of
from twinstream.spark.landing.landed_seqs import Seqs, seqs_in
from twinstream.spark.landing.missing_tables import reports_of
from twinstream.spark.landing.staging import Written
from twinstream.spark.landing.tables import BatchWriter, put_landed
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.options import SourceOptions

__all__ = ["PlannedBatch", "counted", "position_of", "schema_digest"]

_OTHER_WRITER: Final = "another program writes to the tables"
_OTHER_SCHEMA: Final = "it was begun with another schema; finish it with that schema"


def position_of(batch: BatchEntry | Plan) -> Position:
    """Return the position in the stream after a landed or planned batch."""
    return Position(batch.end, batch.created, batch.filter, mark=batch.mark)


def schema_digest(options: SourceOptions) -> str:
    """Return a digest of the options that decide into which table and columns a message goes."""
    schema = None if options.json_schema is None else read_json(options.json_schema)
    layout: list[object] = [options.value_format, schema, options.uint64, options.include_headers]
    layout += options.renames
    if options.bucket is not None:
        layout.append("bucket")
    return hashlib.sha256(json.dumps(layout, sort_keys=True).encode()).hexdigest()[:16]


@frozen
class PlannedBatch:
    """A batch to land by its plan. `owner` names the source or stream that lands it, for errors.

    `before` is the last message of the stream when the previous batch was planned.
    """

    plan: Plan
    before: Mark | None
    job: LandJob
    tables: BatchWriter
    owner: str

    def land(self, leader: Leader, engine: Engine, group: str = "") -> BatchEntry:
        """Let tasks write the files of the batch, and add them to the tables that lack it.

        Return the entry of the batch. Raises `JournalError` if the files of the batch have fewer
        rows than the stream has messages, two rows of the same sequence, or sequences outside the
        batch.
        """
        plan = self.plan
        subjects = tuple(plan.filter.split(",")) if plan.filter else ()
        job = evolve(self.job, options=evolve(self.job.options, subjects=subjects))
        ranges = ranges_of(
            leader, job.options, plan.start, position_of(plan), self.before, plan.parts
        )
        if HOOKS:
            reached("land: before tasks", plan)
        names = job.names
        reports = reports_of(
            lambda folder: evolve(job, folder=folder).run(engine, ranges, group),
            job.folder,
            lambda new: self.tables.prepared(
                [*job.targets(self.tables.existing), *new], job.columns
            ),
            names,
            self.tables.existing,
        )
        if names.token:
            names.refuse_many([*self.tables.existing(names.table), *files_by_table(reports)])
        self._check_earlier(reports)
        put_landed(self.tables, job, reports)
        found = sum(each.rows for each in reports)
        seqs = self._checked(self.tables.written, found)
        entry = BatchEntry.of_plan(plan)
        return counted(entry, seqs, self.tables.written, job.names.dead_letters)

    def _check_earlier(self, reports: Sequence[TaskReport]) -> None:
        """Check the files of this attempt with those that an earlier one has added to tables.

        Otherwise, an attempt with another schema would add a message to a second table, and neither
        schema could finish the batch then.
        """
        possible = self.job.tables(self.tables.existing)
        earlier = [each for each in map(self.tables.found, possible) if each is not None]
        if earlier:
            files = files_by_table(reports)
            for each in earlier:
                files.pop(each.table, None)
            new = [Written.of(table, each, self.tables.lake) for table, each in files.items()]
            self._checked([*earlier, *new], sum(each.rows for each in reports))

    def _checked(self, written: Sequence[Written], found: int) -> Seqs:
        """Count the rows in files of the batch. `found` is the number that the tasks reported."""
        plan, seqs = self.plan, seqs_in(written, self.job.seq_column, found)
        inside = not seqs.count or (plan.start <= seqs.first and seqs.last < plan.end)
        if seqs.count == seqs.distinct and seqs.count >= found and inside:
            return seqs
        reason = _OTHER_WRITER
        if plan.schema != schema_digest(self.job.options):
            reason = _OTHER_SCHEMA
        raise JournalError(
            f"batch {plan.batch} of {self.owner} ({plan.start} to {plan.end - 1}) has {seqs.count}"
            f" rows of {seqs.distinct} sequences from {seqs.first} to {seqs.last} in its files, and"
            f" the stream {found} messages: {reason}"
        )


def counted(
    entry: BatchEntry, seqs: Seqs, written: Iterable[Written], dead_letters: str
) -> BatchEntry:
    """Return a copy of the entry with the numbers of rows and files that the batch wrote."""
    tables = {
        each.table: TableEntry(rows=each.rows, files=len(each.files), bytes=each.bytes)
        for each in written
    }
    dead = tables.get(dead_letters)
    return evolve(
        entry,
        messages=seqs.count,
        dead_letters=dead.rows if dead else 0,
        first_seq=seqs.first,
        last_seq=seqs.last,
        tables=tables,
    )
