"""The batches of one source: plan them, let tasks write them, commit them to the tables."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from twinstream.core.wire.response import read_json
from twinstream.lake.engine import Engine
from twinstream.lake.entry import BatchEntry, TableEntry
from twinstream.lake.origin import Origin
from twinstream.lake.plan import Plan
from twinstream.lake.task_report import TaskReport, files_by_table
from twinstream.spark.errors import JournalError
from twinstream.spark.landing.land_job import LandJob, ranges_of
from twinstream.spark.landing.landed_seqs import Seqs, seqs_in
from twinstream.spark.landing.staging import Written
from twinstream.spark.landing.tables import BatchWriter, put_landed, refuse_taken
from twinstream.spark.pipeline.accept import landed_position
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.state.positions import position_of
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.source.batch_planner import BatchPlanner
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Offset
from twinstream.spark.source.options import SourceOptions

__all__ = ["SourceBatches", "counted"]


@frozen
class _Writer:
    name: str
    id: str


class SourceBatches:
    """The batches of one source, as `BatchLander` lands them.

    `planning` is the client with which batches are planned. A stop may interrupt it at any time.
    `landing` is the client with which they are landed, which a stop does not interrupt.
    """

    def __init__(
        self,
        source: SourceConfig,
        origin: Origin,
        sink: Sink,
        engine: Engine,
        planning: Leader,
        landing: Leader,
    ) -> None:
        self._source: Final = source
        self._origin: Final = origin
        self._sink: Final = sink
        self._engine: Final = engine
        self._options: Final = evolve(source.source_options, slots=engine.slots)
        self._planner: Final = BatchPlanner(self._options, planning)
        self._leader: Final = landing
        self._group: Final = f"{source.name}-{uuid.uuid4().hex}"
        self._has_looked = False

    def aim_at_end(self) -> None:
        """Record the current end of the stream. Batches have no later messages then."""
        self._planner.aim_at_end()

    def cancel(self) -> None:
        """Let the tasks of the current batch end, so that `land` fails."""
        self._engine.cancel(self._group)

    def close(self) -> None:
        """Close the connection to the server."""
        self._leader.close()

    def next_plan(self, batch: int, last: BatchEntry | None) -> Plan | None:
        """Return the plan of the next batch after `last`, or `None` if no batch is due."""
        name, subjects = self._source.stream, self._source.filter
        position = evolve(landed_position(self._origin, last), filter=subjects)
        start = Offset({name: position})
        found = self._planner.next(start)
        if found is start:
            return None
        end = found.streams[name]
        return Plan(
            batch=batch,
            start=position.next if end.since is None else end.since,
            end=end.next,
            created=end.created,
            mark=end.mark,
            filter=subjects,
            parts=end.parts,
            schema=_digest(self._options),
        )

    def refuse_taken(self, batch: int) -> None:
        """Raise `JournalError` if a table already has this batch.

        The first call also raises the error for later batches. Later calls check only this batch,
        because since the first call only drivers with the journal have written to the tables.
        """
        look = self._sink.holds if self._has_looked else self._sink.reaches
        owner = f"source {self._source.name}"
        refuse_taken(look, possible_tables(self._source), batch, owner)
        self._has_looked = True

    def land(self, plan: Plan, last: BatchEntry | None) -> BatchEntry:
        """Let tasks write the files of a plan, and add them to the tables that lack the batch.

        Return the entry of the batch. Raises `JournalError` if the files of the batch have fewer
        rows than the stream has messages, two rows of the same sequence, or sequences outside the
        batch.
        """
        started = time.monotonic()
        tables = self._sink.batch(plan.batch, _Writer(self._source.name, self._origin.id))
        try:
            reports = self._write(plan, last, tables)
            found = sum(each.rows for each in reports)
            seqs = seqs_in(tables.written, self._source.seq_column, found)
            self._check(plan, seqs, found)
        finally:
            tables.close()
        (state,) = self._leader.states()
        return evolve(
            counted(BatchEntry.of_plan(plan), seqs, tables.written, self._source.dead_letters),
            backlog=max(0, state.next - plan.end),
            seconds=round(time.monotonic() - started, 3),
        )

    def discard(self, batch: int) -> None:
        """Remove the rows of a batch from the tables."""
        for table in possible_tables(self._source):
            if self._sink.reaches(table, batch):
                self._sink.replace(table, batch, ())

    def _write(
        self, plan: Plan, last: BatchEntry | None, tables: BatchWriter
    ) -> Sequence[TaskReport]:
        subjects = tuple(plan.filter.split(",")) if plan.filter else ()
        options = evolve(self._options, subjects=subjects)
        job = LandJob(options, self._source.tables, tables.folder, plan.batch)
        before = None if last is None else last.mark
        position = position_of(plan)
        ranges = ranges_of(self._leader, options, plan.start, position, before, plan.parts)
        reports = job.run(self._engine, ranges, self._group)
        self._check_earlier(plan, tables, job, reports)
        put_landed(tables, job, reports)
        return reports

    def _check_earlier(
        self, plan: Plan, tables: BatchWriter, job: LandJob, reports: Sequence[TaskReport]
    ) -> None:
        """Check the files of this attempt with those that an earlier one has added to tables.

        Otherwise, an attempt with another schema would add a message to a second table, and neither
        schema could finish the batch then.
        """
        earlier = [each for each in map(tables.found, job.tables) if each is not None]
        if earlier:
            files = files_by_table(reports)
            for each in earlier:
                files.pop(each.table, None)
            new = [Written(table, tuple(paths)) for table, paths in files.items()]
            found = sum(each.rows for each in reports)
            self._check(plan, seqs_in([*earlier, *new], self._source.seq_column, found), found)

    def _check(self, plan: Plan, seqs: Seqs, found: int) -> None:
        inside = not seqs.count or (plan.start <= seqs.first and seqs.last < plan.end)
        if seqs.count == seqs.distinct and seqs.count >= found and inside:
            return
        if plan.schema != _digest(self._options):
            reason = "it was begun with another schema; finish it with that schema"
        else:
            reason = "another program writes to the tables"
        raise JournalError(
            f"batch {plan.batch} of source {self._source.name} ({plan.start} to {plan.end - 1}) has"
            f" {seqs.count} rows of {seqs.distinct} sequences from {seqs.first} to {seqs.last} in"
            f" its files, and the stream {found} messages: {reason}"
        )


def counted(
    entry: BatchEntry, seqs: Seqs, written: Sequence[Written], dead_letters: str
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


def _digest(options: SourceOptions) -> str:
    """Return a digest of the options that decide into which table and columns a message goes."""
    schema = None if options.json_schema is None else read_json(options.json_schema)
    layout = [options.value_format, schema, options.uint64, options.include_headers]
    return hashlib.sha256(json.dumps(layout, sort_keys=True).encode()).hexdigest()[:16]
