"""The partitions of Iceberg tables: the spec of a table, and the values of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import BooleanType, IcebergType, StringType

from twinstream.lake.errors import JournalError
from twinstream.spark.landing.partition_rows import values_of
from twinstream.spark.landing.partitions import (
    Partition,
    changed_partitions,
    stored_partition,
    stored_partitions,
)

__all__ = [
    "known_partitions",
    "record_of",
    "refuse_other_partitions",
    "spec_of",
    "table_partitions",
]

_TRANSFORMS: Final[dict[str, Transform[Any, Any]]] = {
    "identity": IdentityTransform(),
    "year": YearTransform(),
    "month": MonthTransform(),
    "day": DayTransform(),
    "hour": HourTransform(),
}


def spec_of(columns: pa.Schema, schema: Schema) -> PartitionSpec:
    """Return the spec of a new table with these columns; `schema` has them as Iceberg does."""
    found: list[PartitionField] = []
    for at, each in enumerate(stored_partitions(columns), start=PARTITION_FIELD_ID_START):
        number, kind = schema.find_field(each.source).field_id, _TRANSFORMS[each.transform]
        found.append(PartitionField(source_id=number, field_id=at, transform=kind, name=each.name))
    return PartitionSpec(*found)


def table_partitions(metadata: TableMetadata) -> tuple[Partition, ...]:
    """Return the partitions of new files of a table. Some may have transforms of other programs."""
    schema = metadata.schema()
    found: list[Partition] = []
    for each in metadata.spec().fields:
        field: Any = each  # the type of its transform is not complete
        source = schema.find_column_name(each.source_id) or each.name
        found.append(stored_partition(str(field.transform), source))
    return tuple(found)


def known_partitions(table: str, metadata: TableMetadata) -> tuple[Partition, ...]:
    """Return the partitions of a table. Raises `JournalError` for a transform that is unknown."""
    found = table_partitions(metadata)
    for each in found:
        if each.transform not in _TRANSFORMS:
            raise JournalError(
                f"another program has divided the table {Path(table).name} by {each.text}, and a"
                " pipeline writes no files with such partitions; give the table its earlier"
                " partitions, or name another table"
            )
    return found


def refuse_other_partitions(table: str, metadata: TableMetadata, columns: pa.Schema) -> None:
    """Raise `SchemaError` if files with these columns have other partitions than a table."""
    before = [each.text for each in table_partitions(metadata)]
    now = [each.text for each in stored_partitions(columns)]
    if before != now:
        raise changed_partitions(Path(table).name, before, now)


def record_of(partition: str, metadata: TableMetadata) -> Record:
    """Return the values of a partition as a manifest has them."""
    values = values_of(partition)
    types = metadata.spec().partition_type(metadata.schema()).fields
    pairs = zip(table_partitions(metadata), types, strict=True)
    return Record(*(_value(values[own.name], each.field_type) for own, each in pairs))


def _value(text: str | None, kind: IcebergType) -> Any:
    if text is None or isinstance(kind, StringType):
        return text
    return text == "true" if isinstance(kind, BooleanType) else int(text)
