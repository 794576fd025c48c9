"""Refuse Iceberg tables that another program made or changed so that they cannot take a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping

from twinstream.lake.iceberg.columns import arrow_columns
from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.iceberg.tables import NAME_MAPPING
from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.split_tables import BATCH_COLUMN

__all__ = [
    "refuse_foreign",
    "refuse_renamed",
    "refuse_taken_name",
    "refuse_unfit",
    "refuse_unmapped",
]

_REMEDY: Final = "or name another table"

# The newest version of the format whose manifests pyiceberg writes.
_NEWEST: Final = 2


def refuse_foreign(table: str, schema: Schema) -> None:
    """Raise `SchemaError` for a table without the column of batch numbers.

    A pipeline cannot tell which batches such a table has.
    """
    if BATCH_COLUMN not in schema.column_names:
        raise SchemaError(
            f"{_the(table)} has no column {BATCH_COLUMN!r}, so another program has made it; name"
            " another table, or let the pipeline create it"
        )


def refuse_unfit(table: str, metadata: TableMetadata, columns: pa.Schema) -> None:
    """Raise `SchemaError` if the table cannot take files with these columns.

    Its version may be too new, or it requires values that the files do not have: then readers could
    not read it any more.
    """
    schema = metadata.schema()
    refuse_foreign(table, schema)
    if metadata.format_version > _NEWEST:
        raise SchemaError(
            f"{_the(table)} has the format version {metadata.format_version}, and pyiceberg writes"
            f" at most {_NEWEST}; name another table"
        )
    for name in _required(arrow_columns(schema), columns, ""):
        if name != BATCH_COLUMN:
            raise SchemaError(
                f"column {name!r} of {_the(table)} must not be null, and some messages have no"
                f" value for it; drop NOT NULL of the column, {_REMEDY}"
            )


def refuse_renamed(table: str, metadata: TableMetadata, wanted: Schema) -> None:
    """Raise `SchemaError` if a new column is an old one, which has got another name.

    With the new column, its values in older files would belong to the new column.
    """
    current = metadata.schema()
    new = [name for name in wanted.column_names if name not in current.column_names]
    for earlier in reversed(metadata.schemas):
        for name in new:
            if name not in earlier.column_names:
                continue
            now = current.find_column_name(earlier.find_field(name).field_id)
            if now is not None:
                raise SchemaError(
                    f"column {name!r} of {_the(table)} was renamed to {now!r}, and the values"
                    f" of older files belong to it; rename it back, {_REMEDY}"
                )


def refuse_taken_name(table: str, metadata: TableMetadata, old: str, new: str) -> None:
    """Raise `SchemaError` if a column was removed whose name another column is to get.

    Readers would find the values of both in older files.
    """
    column = metadata.schema().find_field(old).field_id
    for earlier in metadata.schemas:
        if new in earlier.column_names and earlier.find_field(new).field_id != column:
            raise SchemaError(
                f"column {old!r} of {_the(table)} cannot become {new!r}: the table had another"
                f" column of this name, whose values are in older files; leave out the rename,"
                f" {_REMEDY}"
            )


def refuse_unmapped(table: str, metadata: TableMetadata, wanted: Schema) -> None:
    """Raise `SchemaError` if readers would not find a column in files without the IDs of columns.

    Another program has set the property, or has added the column without it.
    """
    text = metadata.properties.get(NAME_MAPPING)
    if text is None:
        return
    try:
        ids = dict(_mapped(NameMapping.model_validate_json(text), ""))
    except ValidationError:
        ids = {}
    for name in wanted.column_names:
        if ids.get(name) != metadata.schema().find_field(name).field_id:
            raise SchemaError(
                f"the property {NAME_MAPPING} of {_the(table)} does not map the column {name!r}, so"
                " readers would not see its values; remove the property, which the next batch sets"
                " again"
            )


def _mapped(fields: Iterable[MappedField], above: str) -> Iterator[tuple[str, int | None]]:
    for each in fields:
        for name in each.names:
            yield above + name, each.field_id
            yield from _mapped(each.fields, f"{above}{name}.")


def _required(known: Iterable[pa.Field], given: Iterable[pa.Field], above: str) -> list[str]:
    """Return the required columns and members of structs that the given ones do not always have."""
    by_name, found = {each.name: each for each in given}, list[str]()
    for column in known:
        own, name = by_name.get(column.name), f"{above}{column.name}"
        if not column.nullable and (own is None or own.nullable):
            found.append(name)
        elif own is not None and pa.types.is_struct(column.type) and pa.types.is_struct(own.type):
            found += _required(column.type, own.type, f"{name}.")
    return found


def _the(table: str) -> str:
    return f"the table {CatalogSettings.table_name(table)}"
