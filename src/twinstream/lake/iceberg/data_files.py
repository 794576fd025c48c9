"""Convert between what a task reports about a file and what a manifest has about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType

from twinstream.lake.task_report import Bounds, TaskFile

__all__ = ["bounds_of", "data_file", "path_of", "url_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SCHEME: Final = "s3://"


def url_of(path: Path) -> str:
    """Return the URL of a file, whose path begins with the name of its bucket."""
    return f"{_SCHEME}{path.as_posix()}"


def path_of(url: str) -> Path:
    """Return the path of a file, beginning with the name of its bucket, for its URL."""
    return Path(url.partition("://")[2])


def data_file(file: TaskFile, schema: Schema, spec_id: int, partition: Record) -> DataFile:
    """Return what a manifest has about the file of a task.

    `partition` has the values of the partition for a spec of the table.
    """
    lows: dict[int, bytes] = {}
    highs: dict[int, bytes] = {}
    for name, (low, high) in file.bounds.items():
        column = schema.find_field(name)
        assert isinstance(column.field_type, PrimitiveType), name
        lows[column.field_id] = to_bytes(column.field_type, _value(low))
        highs[column.field_id] = to_bytes(column.field_type, _value(high))
    found = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=url_of(file.path),
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        column_sizes={},
        value_counts=dict.fromkeys(lows, file.rows),
        null_value_counts=dict.fromkeys(lows, 0),
        nan_value_counts={},
        lower_bounds=lows,
        upper_bounds=highs,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    found.spec_id = spec_id
    return found


def bounds_of(file: DataFile, schema: Schema, column: str) -> Bounds | None:
    """Return the bounds of a column in a file, or `None` if the manifest does not have both."""
    found = schema.find_field(column)
    assert isinstance(found.field_type, PrimitiveType), column
    ends: list[Any] = []
    for bounds in (file.lower_bounds, file.upper_bounds):
        known: Mapping[int, bytes] = bounds or {}
        if found.field_id not in known:
            return None
        ends.append(from_bytes(found.field_type, known[found.field_id]))
    return ends[0], ends[1]


def _value(value: Any) -> Any:
    """Return a bound as pyiceberg converts it: a time is a number of microseconds."""
    if not isinstance(value, datetime):
        return value
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return (moment - _EPOCH) // _MICROSECOND
