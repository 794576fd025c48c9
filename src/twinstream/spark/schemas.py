"""Convert the schemas of the source between Arrow and Spark, with the metadata of their columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from twinstream.spark.errors import SchemaError

__all__ = ["arrow_schema", "spark_schema"]


def spark_schema(columns: pa.Schema) -> StructType:
    """Return the Spark schema of columns."""
    return StructType([*map(_spark_field, columns)])


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the Arrow schema of columns. Timestamps are in UTC.

    Raises `SchemaError` for a type that the source has no values for.
    """
    return pa.schema([_arrow_field(each, each.name) for each in columns])


def _spark_field(field: pa.Field) -> StructField:
    metadata = {
        name.decode(): value.decode() if name == b"comment" else json.loads(value)
        for name, value in (field.metadata or {}).items()
    }
    return StructField(field.name, _spark_type(field.type), field.nullable, metadata)


def _spark_type(kind: pa.DataType) -> DataType:
    match kind:
        case pa.StructType():
            return StructType([*map(_spark_field, kind)])
        case pa.ListType():
            return ArrayType(_spark_type(kind.value_type), kind.value_field.nullable)
        case pa.MapType():
            key, value = _spark_type(kind.key_type), _spark_type(kind.item_type)
            return MapType(key, value, kind.item_field.nullable)
        case _:
            return from_arrow_type(kind)


def _arrow_field(field: StructField, path: str) -> pa.Field:
    return pa.field(
        field.name,
        _arrow_type(field.dataType, path),
        field.nullable,
        _arrow_metadata(field.metadata),
    )


def _arrow_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in metadata.items()
    }


def _arrow_type(kind: DataType, path: str) -> pa.DataType:
    """Return the Arrow type of the values at `path`, which is a column or a part of one."""
    match kind:
        case StructType():
            return pa.struct([_arrow_field(each, f"{path}.{each.name}") for each in kind])
        case ArrayType():
            element = _arrow_type(kind.elementType, f"{path}[]")
            return pa.list_(pa.field("element", element, kind.containsNull))
        case MapType():
            value = _arrow_type(kind.valueType, f"{path}.*")
            key = _arrow_type(kind.keyType, f"{path}.*")
            return pa.map_(key, pa.field("value", value, kind.valueContainsNull))
        case _:
            found = _scalar_type(kind)
            if found is None:
                raise SchemaError(
                    f"column {path!r}: the source has no values of type {kind.simpleString()}"
                )
            return found


def _scalar_type(kind: DataType) -> pa.DataType | None:
    """Return the Arrow type of a type without members, or `None` if Arrow has none."""
    try:
        found = to_arrow_type(kind, timezone="UTC")
    except PySparkTypeError:
        return None
    # Arrow has structs for some types of Spark, such as variants.
    return None if pa.types.is_nested(found) else found
