"""Give tables the wider types and the new names that the schemas of their sources ask for.

The rows are read from the tables, so the streams need not have the messages any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from twinstream.spark.pipeline.maintenance.maintenance_lock import maintenance_lock
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.landed_rows import tables_of
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.source_columns import due_changes

__all__ = ["Rewritten", "rewrite"]


@frozen(kw_only=True)
class Rewritten:
    """A table that was rewritten, and what was changed in its columns."""

    table: str
    changes: tuple[str, ...]


def rewrite(config: PipelineConfig) -> Iterator[Rewritten]:
    """Rewrite each table whose columns the schema of its source widens or renames; yield them.

    A table changes at once: a reader sees either the old or the new columns. A table that has the
    columns already is left alone, so after an interruption the call does the rest. Replaced files
    stay on disk until `vacuum` removes them. Of Iceberg tables, only the metadata change. A running
    pipeline lands no batch until the iteration over the results has ended.

    Args:
        config: the pipeline.

    Raises:
        SchemaError: if the columns of a table do not fit its schema even with wider types and new
            names. Nothing is changed. Also if a row has two values of one column, or if two
            columns of an Iceberg table become one; this table is not changed.
        StorageError: if an object store does not answer, or if the lock in it was lost meanwhile.
            Run the command again.
        PipelineBusy: if another program changes a table meanwhile.
        CheckpointError: if a table has rows of an unfinished batch. Finish it first, with the file
            that it began with.
    """
    folders = Folders.of(config.path)
    with maintenance_lock(config, "rewrite", may_be_planned=True) as held:
        sink = open_sink(config, held.check)
        due = [
            (source, *found)
            for source in config.sources
            for found in due_changes(sink, source, _tables(folders, source))
        ]
        for source, table, change in due:
            sink.change(table, change, source)
            yield Rewritten(table=table, changes=change.texts)


def _tables(folders: Folders, source: SourceConfig) -> list[str]:
    return tables_of(source, journal_of(folders, source).entries().values())
