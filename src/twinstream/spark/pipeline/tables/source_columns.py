"""Compare the columns that the schema of a source asks for with those of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from twinstream.spark.decode import fields
from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.partitions import (
    changed_partitions,
    partition_columns,
    stored_partitions,
)
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.landing.table_fit import has_all
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.tables.column_change import ColumnChange, change_of
from twinstream.spark.pipeline.tables.parquet_files import unified
from twinstream.spark.pipeline.tables.sink import Sink

__all__ = ["due_changes", "refuse_old_columns"]


def due_changes(
    sink: Sink, source: SourceConfig, tables: Iterable[str]
) -> Iterator[tuple[str, ColumnChange]]:
    """Yield the tables of a source whose columns the schema widens or renames, with the changes.

    Raises `SchemaError` if a table would not fit the schema even then.
    """
    for table, wanted in _wanted(source, tables):
        change = _change(table, unified(sink.schemas(table)), wanted, source)
        if change.texts:
            yield table, change


def refuse_old_columns(sink: Sink, source: SourceConfig, tables: Iterable[str]) -> None:
    """Raise `SchemaError` if a table of a source does not fit its schema or its partitions.

    Call this before a batch is planned, because a planned batch must be finished. If a rewrite
    would make the table fit, the error names the command.
    """
    for table, wanted in _wanted(source, tables):
        for known in sink.schemas(table):
            change = _change(table, known, wanted, source)
            if change.texts:
                raise SchemaError(
                    f"the table {table} has other columns than the schema of source {source.name}"
                    f" ({'; '.join(change.texts)}): run twinstream pipeline rewrite first"
                )
            if has_all(known, wanted):
                break


def _change(table: str, known: pa.Schema, wanted: pa.Schema, source: SourceConfig) -> ColumnChange:
    """Return the change of a table's columns. Its partitions and their columns cannot change."""
    before, now = (_partitions(each, source) for each in (known, wanted))
    # If the column of a partition has a new name, that is the reason to refuse.
    if len(known) and [source.renames.get(each, each) for each in before] != now:
        raise changed_partitions(table, before, now)
    change = change_of(table, known, wanted, source.renames)
    dividing = {each.source for each in source.partitions}
    if dividing & change.changed(known):
        raise SchemaError(
            f"the table {table} has partitions by other columns than the schema of source"
            f" {source.name} ({'; '.join(change.texts)}): such columns cannot be changed, so name"
            " another table"
        )
    return change


def _partitions(columns: pa.Schema, source: SourceConfig) -> list[str]:
    """Return what tells the partitions of a table. In a catalog, these are not only columns."""
    if source.files.in_catalog:
        return [each.text for each in stored_partitions(columns)]
    return partition_columns(columns)


def _wanted(source: SourceConfig, tables: Iterable[str]) -> Iterator[tuple[str, pa.Schema]]:
    """Yield tables of a source with the columns that its schema asks for.

    Tables of advisories have no schema of the user.
    """
    if source.format == "advisory":
        return
    split = TableSplit(source.source_options, source.tables, batch=0)
    for table in tables:
        if table != source.dead_letters:
            columns = split.columns(table)
            yield table, pa.schema(map(fields.bare_field, columns), columns.metadata)
