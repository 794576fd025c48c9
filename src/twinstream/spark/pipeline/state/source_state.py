"""What a pipeline has stored about a source: its journal and its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from twinstream.lake.entry import BatchEntry
from twinstream.lake.journal import Journal
from twinstream.spark.errors import JournalError
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.pipeline.tables.table_lock import TableLock

__all__ = ["SourceState", "journal_of", "journals_in", "refuse_tables_of_others"]

# What a source had in its folder when Spark's checkpoint determined where it continues.
_EARLIER = ("checkpoint", "journal.jsonl", "source.json")


@frozen
class SourceState:
    """The journal and the tables of a source, and the lock of the tables."""

    folders: Folders
    journal: Journal
    sink: Sink
    lock: TableLock

    @classmethod
    def of(
        cls,
        config: PipelineConfig,
        source: SourceConfig,
        check: Callable[[], None] = lambda: None,
    ) -> SourceState:
        """Return the stored state of a source of a pipeline. Raises as `journal_of` does.

        `check` is for `open_sink`.
        """
        folders = Folders.of(config.path)
        sink = open_sink(config, check)
        return cls(folders, journal_of(folders, source), sink, TableLock(folders))


def journal_of(folders: Folders, source: SourceConfig) -> Journal:
    """Return the journal of a source.

    Raises `JournalError` if the source has the state of an earlier layout.
    """
    for name in _EARLIER:
        file = folders.state / source.name / name
        if file.exists():
            raise JournalError(
                f"{file} is of a layout with a checkpoint of Spark, from which this release cannot"
                " continue: land into a new folder"
            )
    return Journal(folders.store, source.name)


def journals_in(folders: Folders) -> Iterator[tuple[str, Journal]]:
    """Yield the name and the journal of each source in a lake, also of other pipelines' sources."""
    for name in folders.store.folders():
        yield name, Journal(folders.store, name)


def refuse_tables_of_others(
    folders: Folders, source: SourceConfig, sink: Sink, entries: Mapping[int, BatchEntry]
) -> None:
    """Raise `JournalError` if another source has landed into a table of a source.

    `entries` are those of the source. A table in one of them is its own.
    """
    new = {*possible_tables(source, sink)} - {
        name for each in entries.values() for name in each.tables
    }
    if not new:
        return
    for name, journal in journals_in(folders):
        of_other = () if name == source.name else journal.entries().values()
        for table in sorted(new & {table for each in of_other for table in each.tables}):
            raise JournalError(
                f"table {table} has rows of source {name}, so source {source.name} cannot land into"
                " it; name another table; nothing was landed"
            )
