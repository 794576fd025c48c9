"""The columns and settings of a Delta table: check them, add what is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake

from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.partitions import (
    changed_partitions,
    partition_columns,
    with_partitions,
)
from twinstream.spark.landing.table_fit import check_columns, has_all
from twinstream.spark.pipeline.tables.delta_place import (
    BOUNDED_COLUMNS,
    DeltaPlace,
    table_settings,
)

__all__ = [
    "ON_THIS_VERSION",
    "arrow_columns",
    "check_delta",
    "fitting",
    "set_bounded",
    "set_properties",
    "with_bounds",
]

ON_THIS_VERSION: Final = CommitProperties(max_commit_retries=0)
"""A commit on a version that is not the newest one fails."""


def fitting(
    delta: DeltaTable | None,
    table: str,
    columns: pa.Schema,
    files: Sequence[TaskFile],
    place: DeltaPlace,
    check: Callable[[], None],
) -> DeltaTable:
    """Create the table, or add the columns and settings that it lacks, and return it.

    `check` is called before each commit. Raises `SchemaError` if the columns or their partitions do
    not fit the table.
    """
    schema = Schema.from_arrow(columns)
    further = with_bounds(files)
    if delta is None:
        check()
        settings = table_settings(columns.names, further)
        delta = place.create(table, schema, partition_columns(columns), settings)
    check_delta(delta, table, columns)
    known, new = arrow_columns(delta.schema()), arrow_columns(schema)
    if not has_all(known, new):
        no_rows = pa.Table.from_batches([], new)
        check()
        write_deltalake(
            delta,
            no_rows,
            mode="append",
            schema_mode="merge",
            commit_properties=ON_THIS_VERSION,
        )
        delta.update_incremental()
    set_bounded(delta, further, check=check)
    return delta


def with_bounds(files: Iterable[TaskFile]) -> set[str]:
    """Return the columns whose bounds files have."""
    return {name for file in files for name in (*file.bounds, *file.nulls)}


def set_bounded(
    delta: DeltaTable,
    further: Collection[str],
    gone: Collection[str] = (),
    check: Callable[[], None] = lambda: None,
) -> None:
    """Let readers use the bounds of further columns, and no longer of columns that are gone.

    `check` is called before the commit.
    """
    text = delta.metadata().configuration.get(BOUNDED_COLUMNS)
    if text is None:
        return
    known = {*text.split(",")}
    wanted = {*known, *further} - {*gone}
    if wanted != known:
        check()
        set_properties(delta, {BOUNDED_COLUMNS: ",".join(sorted(wanted))})
        delta.update_incremental()


def set_properties(delta: DeltaTable, properties: dict[str, str]) -> None:
    """Change properties of exactly the version of a table that `delta` is.

    deltalake (1.6.6) holds Python's lock until the store answers, as in no other call. So no thread
    of this process renews the lock of the tables meanwhile. If another command takes the lock over,
    this commit fails, and the next `check` raises an error.
    """
    delta.alter.set_table_properties(
        properties, raise_if_not_exists=False, commit_properties=ON_THIS_VERSION
    )


def check_delta(delta: DeltaTable, table: str, columns: pa.Schema) -> None:
    """Raise `SchemaError` if the columns or their partitions do not fit the table."""
    known, name = arrow_columns(delta.schema()), Path(table).name
    before, now = delta.metadata().partition_columns, partition_columns(columns)
    if before != now:
        raise changed_partitions(name, before, now)
    check_columns(name, known, arrow_columns(Schema.from_arrow(with_partitions(columns))))


def arrow_columns(schema: Schema) -> pa.Schema:
    """Return the columns of a table."""
    given: Any = schema.to_arrow()  # an object with Arrow's C interface, which pyarrow accepts
    return pa.schema(given)
