"""Check that new files fit a table. Readers fail if a column has different types in two files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.batch_folders import batch_folders
from twinstream.spark.landing.partitions import check_partitions
from twinstream.spark.landing.staging import files_in

__all__ = ["check_columns", "check_fit", "file_schemas", "has_all"]


def check_fit(table: Path, files: Sequence[Path]) -> None:
    """Raise `SchemaError` if the columns of new files do not fit a Parquet table.

    A column or a member of a struct may be missing or new, except in structs that are values of a
    map, which must keep the same members. The type of a column must not change. The names of two
    columns must not differ only in case. The partitions must not change.

    The batches of the table are compared from the newest to the oldest. The files of a batch may
    have different columns, because later replays of dead letters add files. The comparison stops at
    the first file that has all columns of the new files, because all other files fit that file.
    """
    if not files:
        return
    new = pq.read_schema(files[0])
    for known in file_schemas(table):
        check_partitions(table.name, known, new)
        check_columns(table.name, known, new)
        if has_all(known, new):
            return


def file_schemas(table: Path) -> Iterator[pa.Schema]:
    """Yield the columns of each file of a Parquet table, from the newest batch to the oldest."""
    for folder in reversed(batch_folders(table).values()):
        for file in files_in(folder):
            yield pq.read_schema(file)


def check_columns(table: str, known: pa.Schema, new: pa.Schema) -> None:
    """Raise `SchemaError` if new columns do not fit the known columns; see `check_fit`."""
    by_name = {each.name.lower(): each for each in known}
    for column in new:
        old = by_name.get(column.name.lower())
        if old is not None and (old.name != column.name or not _fits(old.type, column.type)):
            raise SchemaError(
                f"column {old.name!r} of the table {table} was landed as {old.type} and is"
                f" {_named(old, column)}{column.type} now; name another table"
            )


def _named(old: pa.Field, new: pa.Field) -> str:
    return "" if old.name == new.name else f"{new.name!r}, "


def _fits(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether a table can have values of both types in one column.

    A struct may gain and lose members. All other types must be equal.
    """
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        members = {each.name.lower(): each for each in old}
        pairs = [(members.get(each.name.lower(), each), each) for each in new]
        return all(a.name == b.name and _fits(a.type, b.type) for a, b in pairs)
    if pa.types.is_list(old) and pa.types.is_list(new):
        return _fits(old.value_type, new.value_type)
    if pa.types.is_map(old) and pa.types.is_map(new):
        # Delta cannot merge files if the structs in the values of a map have different members.
        before, after = old.item_type, new.item_type
        have_same_members = _has_members(before, after) and _has_members(after, before)
        return _fits(before, after) and have_same_members
    return bool(old == new)


def has_all(known: Iterable[pa.Field], new: Iterable[pa.Field]) -> bool:
    """Return whether the known columns include all new columns and all members of their structs."""
    types = {each.name: each.type for each in known}
    return all(each.name in types and _has_members(types[each.name], each.type) for each in new)


def _has_members(known: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_struct(known) and pa.types.is_struct(new):
        return has_all(known, new)
    if pa.types.is_list(known) and pa.types.is_list(new):
        return _has_members(known.value_type, new.value_type)
    return True
