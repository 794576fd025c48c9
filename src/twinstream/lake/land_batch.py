"""Land one batch exactly once: its plan, its tasks, its commit, its entry in the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from twinstream.lake.entry import BatchEntry
from twinstream.lake.errors import JournalError
from twinstream.lake.journal import Journal
from twinstream.lake.plan import Plan

__all__ = ["BatchLander", "BatchWork"]


class BatchWork(Protocol):
    """What a source does for its batches."""

    def next_plan(self, batch: int, last: BatchEntry | None) -> Plan | None:
        """Return the plan of the next batch after `last`, or `None` if no batch is due."""
        ...

    def refuse_taken(self, batch: int) -> None:
        """Raise `JournalError` if a table has rows of a batch with this number or a later one."""
        ...

    def land(self, plan: Plan, last: BatchEntry | None) -> BatchEntry:
        """Let tasks write the files of a plan, and add them to the tables that lack the batch.

        `last` is the entry of the batch before it. Return the entry of the batch.
        """
        ...


class BatchLander:
    """Lands the batches of a source, one after the other.

    Several drivers may land the same source at the same time. Then each batch is planned by one of
    them, written by all, and committed to each table by one of them.
    """

    def __init__(
        self,
        journal: Journal,
        work: BatchWork,
        before_tasks: Callable[[], None] = lambda: None,
    ) -> None:
        """`before_tasks` is called when a batch is planned, before its tasks begin."""
        self._journal: Final = journal
        self._work: Final = work
        self._before_tasks: Final = before_tasks
        self._last: BatchEntry | None = None

    def due(self) -> Plan | None:
        """Return the plan of the unfinished batch or else of the next one; `None` if none is due.

        A new plan is not stored yet, so that it costs nothing not to land it.
        """
        newest, unfinished = self._journal.position()
        if unfinished is not None:
            return unfinished
        return self._work.next_plan(newest + 1, self._entry(newest))

    def _entry(self, batch: int) -> BatchEntry | None:
        """Return the entry of a batch, which never changes, or `None` if there is none."""
        if self._last is None or self._last.batch != batch:
            self._last = self._journal.entry(batch)
        return self._last

    def land(self, due: Plan) -> BatchEntry:
        """Land the batch that `due` returned, and return its entry.

        Raises `JournalError` if a table has rows of the batch and the journal has no plan of it.
        """
        self._refuse_taken(due.batch)
        plan = self._journal.planned(due)
        done = self._journal.entry(plan.batch)
        if done is not None:
            return done  # another driver was faster, and perhaps has compacted the batch since
        self._before_tasks()
        last = self._entry(plan.batch - 1)
        self._last = self._journal.landed(self._work.land(plan, last))
        return self._last

    def _refuse_taken(self, batch: int) -> None:
        """Raise `JournalError` if a table has rows of another writer, or of a lost journal.

        The driver that stored a plan may have added its files to tables. Without a plan, no table
        may have the batch, and in no case may a table have a later batch.
        """
        is_planned = self._journal.plan(batch) is not None
        try:
            self._work.refuse_taken(batch + 1 if is_planned else batch)
        except JournalError:
            # Perhaps another driver has planned or landed the batch since, or has bundled it.
            self._journal.list_bundles()
            found = self._journal.entry(batch) if is_planned else self._journal.plan(batch)
            if found is None:
                raise
