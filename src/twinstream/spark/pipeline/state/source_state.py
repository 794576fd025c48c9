"""What a pipeline has stored about a source: its journal and its tables."""

from __future__ import annotations

from attrs import frozen

from twinstream.lake.journal import Journal
from twinstream.spark.errors import JournalError
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.pipeline.tables.table_lock import TableLock

__all__ = ["SourceState", "journal_of"]

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
    def of(cls, config: PipelineConfig, source: SourceConfig) -> SourceState:
        """Return the stored state of a source of a pipeline. Raises as `journal_of` does."""
        folders = Folders.of(config.path)
        return cls(folders, journal_of(folders, source), open_sink(config), TableLock(folders))


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
