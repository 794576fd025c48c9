"""Build and inspect the columns of typed tables: Arrow type, comment, and decoder metadata.

An Arrow schema contains everything that decoding needs. So the generated types, a user's JSON
Schema and a user's Spark schema have the same representation. Four properties of a column cannot be
expressed by an Arrow type. They are in the metadata of the column: the member must be present, a
required member may be null, a text column has the JSON text of a value, and numbers must not change
when they are converted to doubles.

Only types with the units and bit widths of Spark's types are used, so that each has a Spark type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DECIMAL20",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LONG",
    "STRING",
    "TIMESTAMP",
    "array_of",
    "bare",
    "bare_field",
    "comment_of",
    "is_exact",
    "is_json",
    "is_nullable",
    "is_required",
    "json_text",
    "map_of",
    "optional",
    "record",
    "required",
]

BINARY: Final = pa.binary()
BOOLEAN: Final = pa.bool_()
DATE: Final = pa.date32()
DOUBLE: Final = pa.float64()
FLOAT: Final = pa.float32()
INTEGER: Final = pa.int32()
LONG: Final = pa.int64()
STRING: Final = pa.string()
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
DECIMAL20: Final = pa.decimal128(20, 0)
"""A type that holds every unsigned 64-bit number."""

_REQUIRED: Final = b"twinstream.required"
_NULLABLE: Final = b"twinstream.nullable"
_JSON: Final = b"twinstream.json"
_EXACT: Final = b"twinstream.exact"
_COMMENT: Final = b"comment"
_TRUE: Final = b"true"


def record(*members: pa.Field) -> pa.StructType:
    """Return the type of a JSON object with these members."""
    return pa.struct(members)


def array_of(element: pa.DataType) -> pa.ListType:
    """Return the type of a JSON array whose items have one type."""
    return pa.list_(pa.field("element", element))


def map_of(value: pa.DataType) -> pa.MapType:
    """Return the type of a JSON object with any member names and values of one type."""
    return pa.map_(STRING, value)


def required(
    name: str, kind: pa.DataType, comment: str = "", *, nullable: bool = False, exact: bool = False
) -> pa.Field:
    """Return the column of a member that must be present; with `nullable`, it may be null.

    With `exact`, a message does not match if converting its number to a double changes it.
    """
    marks = [_REQUIRED, *([_NULLABLE] if nullable else []), *([_EXACT] if exact else [])]
    return _field(name, kind, comment, marks)


def optional(name: str, kind: pa.DataType, comment: str = "", *, exact: bool = False) -> pa.Field:
    """Return the column of a member that may be absent or null; see `required` for `exact`."""
    return _field(name, kind, comment, [_EXACT] if exact else [])


def json_text(name: str, comment: str = "", *, must_exist: bool = False) -> pa.Field:
    """Return a text column that stores the values of a member, of any type, as JSON text.

    With `must_exist`, the member must be present; it may be null.
    """
    return _field(name, STRING, comment, [_JSON, *([_REQUIRED, _NULLABLE] if must_exist else [])])


def is_required(field: pa.Field) -> bool:
    """Return whether the member must be present."""
    return _has(field, _REQUIRED)


def is_nullable(field: pa.Field) -> bool:
    """Return whether the member may be null."""
    return not is_required(field) or _has(field, _NULLABLE)


def is_exact(field: pa.Field) -> bool:
    """Return whether the column rejects numbers that conversion to a double changes."""
    return _has(field, _EXACT)


def comment_of(field: pa.Field) -> str:
    """Return the column's comment, or an empty text."""
    return _metadata(field).get(_COMMENT, b"").decode()


def is_json(field: pa.Field) -> bool:
    """Return whether the column has the JSON text of values of any type."""
    return _has(field, _JSON)


def bare(kind: pa.DataType) -> pa.DataType:
    """Return a type without the metadata of its members. Arrays of values have such types."""
    match kind:
        case pa.StructType():
            return pa.struct(map(bare_field, kind))
        case pa.ListType():
            return pa.list_(bare_field(kind.value_field))
        case pa.MapType():
            return pa.map_(kind.key_type, bare_field(kind.item_field))
        case _:
            return kind


def bare_field(field: pa.Field) -> pa.Field:
    """Return a column without its metadata and that of its members."""
    return pa.field(field.name, bare(field.type), field.nullable)


def _has(field: pa.Field, mark: bytes) -> bool:
    return _metadata(field).get(mark) == _TRUE


def _metadata(field: pa.Field) -> Mapping[bytes, bytes]:
    return field.metadata or {}


def _field(name: str, kind: pa.DataType, comment: str, marks: Sequence[bytes]) -> pa.Field:
    metadata = dict.fromkeys(marks, _TRUE)
    if comment:
        metadata[_COMMENT] = comment.encode()
    # All columns are nullable, because they are null in the row of a message that does not match.
    return pa.field(name, kind, nullable=True, metadata=metadata or None)
