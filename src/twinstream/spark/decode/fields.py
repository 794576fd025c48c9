"""Columns of typed tables: a Spark type, a comment, and what the decoder must know about it.

A Spark schema carries all that decoding needs, so one representation serves the generated types,
a user's JSON Schema and a user's Spark schema. Two facts have no place in a Spark type and travel
in the field's metadata: that a member must be present, and that a text column holds JSON text of a
value that has no columns of its own.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
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
    "DECIMAL20",
    "DOUBLE",
    "INTEGER",
    "LONG",
    "STRING",
    "TIMESTAMP",
    "array_of",
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
DOUBLE: Final = DoubleType()
INTEGER: Final = IntegerType()
LONG: Final = LongType()
STRING: Final = StringType()
TIMESTAMP: Final = TimestampType()
DECIMAL20: Final = DecimalType(20, 0)
"""Wide enough for every unsigned 64-bit number."""

_REQUIRED: Final = "twinstream.required"
_NULLABLE: Final = "twinstream.nullable"
_JSON: Final = "twinstream.json"


def record(*fields: StructField) -> StructType:
    """Return the type of an object with these members."""
    return StructType(list(fields))


def array_of(element: DataType) -> ArrayType:
    """Return the type of an array."""
    return ArrayType(element, containsNull=True)


def map_of(value: DataType) -> MapType:
    """Return the type of an object whose member names are data."""
    return MapType(StringType(), value, valueContainsNull=True)


def required(
    name: str, kind: DataType, comment: str = "", *, nullable: bool = False
) -> StructField:
    """Return a member that must be present; with ``nullable`` it may be null."""
    extra = {_REQUIRED: True, _NULLABLE: True} if nullable else {_REQUIRED: True}
    return _field(name, kind, comment, extra)


def optional(name: str, kind: DataType, comment: str = "") -> StructField:
    """Return a member that may be absent or null."""
    return _field(name, kind, comment, {})


def json_text(name: str, comment: str = "", *, must_exist: bool = False) -> StructField:
    """Return a text column that holds the member's value as JSON, whatever it is."""
    extra = {_JSON: True, _REQUIRED: True, _NULLABLE: True} if must_exist else {_JSON: True}
    return _field(name, STRING, comment, extra)


def is_required(field: StructField) -> bool:
    """Tell whether the member must be present."""
    return bool(field.metadata.get(_REQUIRED))


def is_nullable(field: StructField) -> bool:
    """Tell whether a member that must be present may be null."""
    return not is_required(field) or bool(field.metadata.get(_NULLABLE))


def is_json(field: StructField) -> bool:
    """Tell whether the column holds JSON text."""
    return bool(field.metadata.get(_JSON))


def _field(name: str, kind: DataType, comment: str, extra: dict[str, bool]) -> StructField:
    metadata: dict[str, object] = {**extra}
    if comment:
        metadata["comment"] = comment
    # All columns are nullable: a message that does not fit has a row, too, with null in each.
    return StructField(name, kind, nullable=True, metadata=metadata)
