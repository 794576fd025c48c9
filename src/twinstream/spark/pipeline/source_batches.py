"""The batches of one source: plan them, let tasks write them, commit them to the tables."""

from __future__ import annotations

import time
import uuid
from typing import Final

from attrs import evolve

from twinstream.errors.transient import NO_RESPONSE
from twinstream.lake.engine import Engine
from twinstream.lake.entry import BatchEntry
from twinstream.lake.origin import Origin
from twinstream.lake.plan import Plan
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.landing.tables import refuse_taken
from twinstream.spark.landing.write_batch import PlannedBatch, schema_digest
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.start_point import landed_position
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.tables.sink import Sink, SourceWriter
from twinstream.spark.source.batch_planner import BatchPlanner
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.limits.message_counts import MessageCounts
from twinstream.spark.source.offsets import Offset

__all__ = ["SourceBatches"]


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
        counts = MessageCounts(self._options, planning)
        self._planner: Final = BatchPlanner(self._options, planning, counts)
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
        """Close the connection to the server, and end the processes of tasks."""
        try:
            self._leader.close()
        finally:
            self._engine.cancel(self._group)

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
            schema=schema_digest(self._options),
        )

    def refuse_taken(self, batch: int) -> None:
        """Raise `JournalError` if a table already has this batch.

        The first call also raises the error for later batches. Later calls check only this batch,
        because since the first call only drivers with the journal have written to the tables.
        """
        look = self._sink.holds if self._has_looked else self._sink.reaches
        owner = f"source {self._source.name}"
        refuse_taken(look, possible_tables(self._source, self._sink), batch, owner)
        self._has_looked = True

    def land(self, plan: Plan, last: BatchEntry | None) -> BatchEntry:
        """Let tasks write the files of a plan, and add them to the tables that lack the batch.

        Return the entry of the batch. Raises as `PlannedBatch.land` does.
        """
        started = time.monotonic()
        writer = SourceWriter(self._source.name, self._origin.id, self._source.seq_column)
        tables = self._sink.batch(plan.batch, writer)
        try:
            names = self._source.tables
            split = TableSplit(self._options, names, plan.batch)
            earlier = () if last is None else last.tables
            folder = tables.prepared(split.tables(tables.existing), split.columns, earlier)
            job = LandJob(self._options, names, folder, plan.batch)
            before, owner = None if last is None else last.mark, f"source {self._source.name}"
            batch = PlannedBatch(plan, before, job, tables, owner)
            entry = batch.land(self._leader, self._engine, self._group)
        finally:
            tables.close()
        try:
            (state,) = self._leader.states()
            backlog = max(0, state.next - plan.end)
        except NO_RESPONSE:
            backlog = 0  # the batch is committed, so its entry must not wait for the server
        return evolve(
            entry,
            backlog=backlog,
            seconds=round(time.monotonic() - started, 3),
        )

    def discard(self, batch: int) -> None:
        """Remove the rows of a batch from the tables."""
        for table in possible_tables(self._source, self._sink):
            if self._sink.reaches(table, batch):
                self._sink.replace(table, {batch: ()})
