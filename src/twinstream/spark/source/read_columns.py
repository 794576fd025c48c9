"""The columns that a read offers.

Raw reads offer the parts of a message: subject, data, stream, sequence and time. Raw reads of a
bucket offer key, value, revision, operation and time. With `includeHeaders`, both also offer the
headers.

Typed reads (JSON and events) offer the columns of the payload and further columns, most of which
begin with an underscore: the parts of the message other than the payload, the members that have no
column, the operation of a delete marker, the reason why a message does not match the schema, and
the payload of such a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from twinstream.spark.decode import fields
from twinstream.spark.decode.events import EVENT_COLUMNS
from twinstream.spark.decode.json_schema import load_schema, struct_of
from twinstream.spark.decode.sql_names import sql_name
from twinstream.spark.errors import OptionError, SchemaError
from twinstream.spark.source.columns import part_type
from twinstream.spark.source.options import SourceOptions

__all__ = ["ERROR", "EXTRA", "OPERATION", "ReadColumns"]

EXTRA: Final = "_extra"
"""The column with the JSON text of all members that have no column."""

ERROR: Final = "_error"
"""The column with the reason why a message does not match the schema; null if it matches."""

OPERATION: Final = "_operation"
"""The column with the operation of a delete marker, `DEL` or `PURGE`; null for other messages."""

_RAW: Final = ("subject", "data", "stream", "seq", "timestamp")
_TYPED: Final = ("stream", "subject", "seq", "timestamp")
_RAW_KEYS: Final = ("key", "value", "revision", "operation", "time")
_TYPED_KEYS: Final = ("key", "revision", "operation", "time")


class ReadColumns:
    """The columns of one read.

    `payload` has the payload's columns, and `beside` has all other columns. `payload` is
    empty for raw reads. It is also empty if the columns of the payload come from a requested
    schema that contains only other columns.

    Raises `SchemaError` if a JSON read has no schema, or if a
    member of the payload has the name of another column, and
    `OptionError` if `columnNameOfCorruptRecord` is the name of
    another column.
    """

    def __init__(self, options: SourceOptions, requested: pa.Schema | None = None) -> None:
        self.raw_column: Final = options.corrupt_column
        self.is_typed: Final = options.value_format != "raw"
        if not self.is_typed:
            self.payload = pa.schema([])
            names = _RAW if options.bucket is None else _RAW_KEYS
            self.beside = pa.schema(_parts("", names, options))
            return
        self.beside = pa.schema(_companions(options))
        self.payload = _payload(options, requested, frozenset(self.beside.names))
        _refuse_clash(self.payload, self.beside)

    @property
    def columns(self) -> pa.Schema:
        """All columns. The columns of the payload are first."""
        return pa.schema([*self.payload, *self.beside])

    def check(self, requested: pa.Schema) -> None:
        """Raise `SchemaError` if a column is unknown, duplicate, NOT NULL or of another type."""
        _refuse_not_null(requested)
        _refuse_twice(requested)
        offered = {each.name: each for each in self.columns}
        for each in requested:
            found = offered.get(each.name)
            if found is None:
                raise SchemaError(_not_offered(each.name, list(offered)))
            if found.type != each.type:
                raise SchemaError(
                    f"column {each.name!r} is {sql_name(found.type)}, not {sql_name(each.type)}"
                )


def _payload(
    options: SourceOptions, requested: pa.Schema | None, beside: frozenset[str]
) -> pa.Schema:
    if options.value_format == "advisory":
        return EVENT_COLUMNS
    if options.json_schema is not None:
        return pa.schema([*struct_of(load_schema(options.json_schema), uint64=options.uint64)])
    if requested is None:
        raise SchemaError(
            "valueFormat=json needs a schema: give the option jsonSchema, or a Spark schema with"
            " .schema(…)"
        )
    return pa.schema([each for each in requested if each.name not in beside])


def _companions(options: SourceOptions) -> list[pa.Field]:
    others = [
        fields.optional(EXTRA, fields.STRING, "JSON of the members that have no column."),
        *_parts("_", _TYPED if options.bucket is None else _TYPED_KEYS, options),
        *_operation(options),
        fields.optional(ERROR, fields.STRING, "Why the message does not fit; null if it fits."),
    ]
    raw = options.corrupt_column
    if raw.lower() in {each.name for each in others}:
        raise OptionError("columnNameOfCorruptRecord", f"the source has another column {raw!r}")
    what = "The payload when it does not fit."
    return [*others, fields.optional(raw, fields.BINARY, what)]


def _operation(options: SourceOptions) -> list[pa.Field]:
    """Return a list with the column for delete markers, or an empty list.

    Reads of events have no such column, because events are never delete markers. For reads of
    buckets, `_parts` returns the column.
    """
    if options.value_format != "json" or options.bucket is not None:
        return []
    what = "DEL or PURGE in the row of a deleted key, which has no payload."
    return [fields.optional(OPERATION, fields.STRING, what)]


def _parts(prefix: str, names: tuple[str, ...], options: SourceOptions) -> list[pa.Field]:
    wanted = (*names, "headers") if options.include_headers else names
    return [fields.optional(prefix + name, part_type(name, options.uint64)) for name in wanted]


def _refuse_clash(payload: pa.Schema, beside: pa.Schema) -> None:
    taken = {name.lower() for name in beside.names}
    for name in payload.names:
        if name.lower() in taken:
            raise SchemaError(
                f"the payload has a member {name!r}, which is also a column of the source; leave"
                " it out of the schema (it is kept in _extra), or read raw"
            )


def _not_offered(name: str, offered: list[str]) -> str:
    text = f"there is no column {name!r}; the columns are {', '.join(offered)}"
    if name.removeprefix("_") == "headers":
        return f"{text}; includeHeaders=true adds the headers"
    same = [each for each in offered if each.lower() == name.lower()]
    return f"{text}; column names are case-sensitive, use {same[0]!r}" if same else text


def _refuse_twice(requested: pa.Schema) -> None:
    """Raise `SchemaError` for duplicate names, which Spark reports only when it reads the rows."""
    twice = next((name for name in requested.names if requested.names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(f"the schema has column {twice!r} twice; remove one of them")


def _refuse_not_null(requested: pa.Schema) -> None:
    """Raise `SchemaError` if a column, struct member, array item or map value is NOT NULL.

    A message that does not match the schema gives a row with null in all columns of the payload.
    """
    strict = next(_not_null(fields.record(*requested), ""), None)
    if strict is not None:
        raise SchemaError(
            f"column {strict!r} is NOT NULL, which this source cannot guarantee: remove NOT NULL,"
            " and filter the rows afterwards with WHERE … IS NOT NULL"
        )


def _not_null(kind: pa.DataType, path: str) -> Iterator[str]:
    """Yield the path of each part of a type that may not be null. `path` is that of the type."""
    match kind:
        case pa.StructType():
            for each in kind:
                name = f"{path}.{each.name}" if path else each.name
                if not each.nullable:
                    yield name
                yield from _not_null(each.type, name)
        case pa.ListType():
            if not kind.value_field.nullable:
                yield f"{path}[]"
            yield from _not_null(kind.value_type, f"{path}[]")
        case pa.MapType():
            if not kind.item_field.nullable:
                yield f"{path}.*"
            yield from _not_null(kind.item_type, f"{path}.*")
        case _:
            return
