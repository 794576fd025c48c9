"""Build and inspect the columns of typed tables: Spark type, comment, and decoder metadata.

A Spark schema contains everything that decoding needs. So the generated types, a user's JSON Schema
and a user's Spark schema have the same representation. Four properties of a column cannot be
expressed by a Spark type. They are in the metadata of the column: the member must be present, a
required member may be null, a text column has the JSON text of a value, and numbers must not change
when they are converted to doubles.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

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

BINARY: Final = BinaryType()
BOOLEAN: Final = BooleanType()
DATE: Final = DateType()
DOUBLE: Final = DoubleType()
FLOAT: Final = FloatType()
INTEGER: Final = IntegerType()
LONG: Final = LongType()
STRING: Final = StringType()
TIMESTAMP: Final = TimestampType()
DECIMAL20: Final = DecimalType(20, 0)
"""A type that holds every unsigned 64-bit number."""

_REQUIRED: Final = "twinstream.required"
_NULLABLE: Final = "twinstream.nullable"
_JSON: Final = "twinstream.json"
_EXACT: Final = "twinstream.exact"
_COMMENT: Final = "comment"


def record(*fields: StructField) -> StructType:
    """Return the type of a JSON object with these members."""
    return StructType(list(fields))


def array_of(element: DataType) -> ArrayType:
    """Return the type of a JSON array whose items have one type."""
    return ArrayType(element, containsNull=True)


def map_of(value: DataType) -> MapType:
    """Return the type of a JSON object with any member names and values of one type."""
    return MapType(StringType(), value, valueContainsNull=True)


def required(
    name: str, kind: DataType, comment: str = "", *, nullable: bool = False, exact: bool = False
) -> StructField:
    """Return the column of a member that must be present; with `nullable`, it may be null.

    With `exact`, a message does not match if converting its number to a double changes it.
    """
    extra = {_REQUIRED: True, _NULLABLE: True} if nullable else {_REQUIRED: True}
    return _field(name, kind, comment, {**extra, _EXACT: True} if exact else extra)


def optional(name: str, kind: DataType, comment: str = "", *, exact: bool = False) -> StructField:
    """Return the column of a member that may be absent or null; see `required` for `exact`."""
    return _field(name, kind, comment, {_EXACT: True} if exact else {})


def json_text(name: str, comment: str = "", *, must_exist: bool = False) -> StructField:
    """Return a text column that stores the values of a member, of any type, as JSON text.

    With `must_exist`, the member must be present; it may be null.
    """
    extra = {_JSON: True, _REQUIRED: True, _NULLABLE: True} if must_exist else {_JSON: True}
    return _field(name, STRING, comment, extra)


def is_required(field: StructField) -> bool:
    """Return whether the member must be present."""
    return bool(field.metadata.get(_REQUIRED))


def is_nullable(field: StructField) -> bool:
    """Return whether the member may be null."""
    return not is_required(field) or bool(field.metadata.get(_NULLABLE))


def is_exact(field: StructField) -> bool:
    """Return whether the column rejects numbers that conversion to a double changes."""
    return bool(field.metadata.get(_EXACT))


def comment_of(field: StructField) -> str:
    """Return the column's comment, or an empty text."""
    return str(field.metadata.get(_COMMENT, ""))


def is_json(field: StructField) -> bool:
    """Return whether the column has the JSON text of values of any type."""
    return bool(field.metadata.get(_JSON))


def _field(name: str, kind: DataType, comment: str, extra: dict[str, bool]) -> StructField:
    metadata: dict[str, object] = {**extra}
    if comment:
        metadata[_COMMENT] = comment
    # All columns are nullable, because they are null in the row of a message that does not match.
    return StructField(name, kind, nullable=True, metadata=metadata)
