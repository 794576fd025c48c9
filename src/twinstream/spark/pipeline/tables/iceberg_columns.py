"""Widen and rename the columns of an Iceberg table as metadata, so that no file is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from twinstream.lake.iceberg.columns import arrow_columns, iceberg_columns
from twinstream.lake.iceberg.mapping import missing_mapping
from twinstream.spark.errors import PipelineBusy, SchemaError
from twinstream.spark.pipeline.tables.column_change import ColumnChange
from twinstream.spark.pipeline.tables.iceberg_change import transaction_on
from twinstream.spark.pipeline.tables.iceberg_fit import refuse_taken_name, refuse_unmapped

__all__ = ["change_columns", "refuse_joined"]


def refuse_joined(table: str, change: ColumnChange) -> None:
    """Raise `SchemaError` if two columns become one: metadata cannot join their values."""
    for name, sources in change.sources.items():
        if len(sources) > 1:
            raise SchemaError(
                f"the table {table} has the columns {' and '.join(map(repr, sorted(sources)))},"
                f" which cannot become one column {name!r} of an Iceberg table, whose files are not"
                " written again: leave out the rename, or name another table"
            )


def change_columns(name: str, table: Table, change: ColumnChange) -> None:
    """Commit a change on this state of a table, unless the table has it already.

    Readers find a renamed column in older files by its old name, which the name mapping of the
    table keeps. Raises `PipelineBusy` if another program has removed or renamed a column meanwhile.
    """
    transaction = transaction_on(table)
    metadata = transaction.table_metadata
    known = arrow_columns(metadata.schema())
    refuse_unmapped(name, metadata, metadata.schema())
    mapping = missing_mapping(metadata)
    if mapping:
        transaction.set_properties(mapping)
    with transaction.update_schema() as update:
        for column in change.columns:
            (old,) = change.sources[column.name]
            if old not in known.names and column.name in known.names:
                old = column.name  # the answer to an earlier commit was lost
            if old not in known.names:
                raise PipelineBusy(
                    f"another program has changed the column {old!r} of the table {name} meanwhile,"
                    " so its columns were not changed: run the command again"
                )
            for path, wider in _wider(old, known.field(old).type, column.type):
                (kind,) = iceberg_columns([pa.field("", wider)]).fields
                update.update_column(path, kind.field_type)
            if old != column.name:
                refuse_taken_name(name, metadata, old, column.name)
                update.rename_column(old, column.name)
    transaction.commit_transaction()


def _wider(path: str, old: Any, new: Any) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the paths and the types of the columns, and of their parts, that get another type."""
    if pa.types.is_struct(old):
        for each in old:
            yield from _wider(f"{path}.{each.name}", each.type, new.field(each.name).type)
    elif pa.types.is_list(old):
        yield from _wider(f"{path}.element", old.value_type, new.value_type)
    elif pa.types.is_map(old):
        yield from _wider(f"{path}.value", old.item_type, new.item_type)
    elif old != new:
        yield path, new
