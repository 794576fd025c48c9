"""Whether new rows fit a Parquet table: readers take no column that has two types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from js_spark.batch_folders import batch_folders
from js_spark.errors import SchemaError
from js_spark.staging import files_in

__all__ = ["check_fit"]


def check_fit(table: Path, files: Sequence[Path]) -> None:
    """Compare the columns of new files with those of a table's newest batch.

    Columns may come and go, also inside of others. Raises `SchemaError` for a type that changed.
    """
    folders = list(batch_folders(table).values())
    landed = files_in(folders[-1]) if folders else ()
    if not landed or not files:
        return
    known = pq.read_schema(landed[0])
    for column in pq.read_schema(files[0]):
        at = known.get_field_index(column.name)
        if at >= 0 and not _fits(known.field(at).type, column.type):
            raise SchemaError(
                f"column {column.name!r} of the table {table.name} was landed as"
                f" {known.field(at).type} and is {column.type} now; name another table"
            )


def _fits(old: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        members = {each.name: each.type for each in old}
        return all(_fits(members.get(each.name, each.type), each.type) for each in new)
    if pa.types.is_list(old) and pa.types.is_list(new):
        return _fits(old.value_type, new.value_type)
    return bool(old == new)
