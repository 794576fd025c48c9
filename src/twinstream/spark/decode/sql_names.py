"""The names of types in SQL. Errors have them, because users write and read schemas in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from twinstream.spark.decode import fields

__all__ = ["sql_name"]

_NAMES: Final[Mapping[pa.DataType, str]] = {
    fields.BINARY: "binary",
    fields.BOOLEAN: "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    fields.INTEGER: "int",
    fields.LONG: "bigint",
    fields.FLOAT: "float",
    fields.DOUBLE: "double",
    fields.STRING: "string",
    fields.DATE: "date",
    fields.TIMESTAMP: "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.time64("ns"): "time",
    pa.duration("us"): "interval",
    pa.null(): "void",
}


def sql_name(kind: pa.DataType) -> str:
    """Return the name of a type, such as `array<bigint>`."""
    match kind:
        case pa.StructType():
            members = (f"{member.name}:{sql_name(member.type)}" for member in kind)
            return f"struct<{','.join(members)}>"
        case pa.ListType():
            return f"array<{sql_name(kind.value_type)}>"
        case pa.MapType():
            return f"map<{sql_name(kind.key_type)},{sql_name(kind.item_type)}>"
        case pa.Decimal128Type():
            return f"decimal({kind.precision},{kind.scale})"
        case _:
            return _NAMES.get(kind, str(kind))
