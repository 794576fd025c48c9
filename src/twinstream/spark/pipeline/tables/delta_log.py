"""Files in the log of a Delta table: what it has of them, and what a commit adds."""

from __future__ import annotations

import json
import math
import operator
import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from twinstream.lake.task_report import TaskFile
from twinstream.spark.landing.partition_rows import values_of
from twinstream.spark.landing.split_tables import BATCH_COLUMN

__all__ = ["action_table", "actions", "add_action", "logged_file", "names_within"]

# The type of sequences of all sizes.
_DECIMAL: Final = pa.decimal128(20, 0)

# The number of characters of a text that are in bounds. A longer text lies between its beginning
# and its beginning with the last character of Unicode behind it.
_TEXT: Final = 32
_BEYOND: Final = "\U0010ffff"


def action_table(delta: DeltaTable) -> pa.Table:
    """Return the files of a table, with their paths, and the partitions and bounds of columns."""
    return pa.table(delta.get_add_actions(flatten=True))


def actions(delta: DeltaTable) -> list[dict[str, Any]]:
    """Return the rows of `action_table`."""
    return action_table(delta).to_pylist()


def names_within(delta: DeltaTable, seq: str, low: int, high: int, since: int) -> list[str]:
    """Return the names of the files that may have rows of a scan.

    Files of other programs may have no bounds in the log. Delta's own choice of files by a
    predicate takes 50 MiB of memory more.
    """
    found = action_table(delta)
    for name, compare, bound in (
        (f"max.{seq}", operator.ge, low),
        (f"min.{seq}", operator.lt, high),
        (f"max.{BATCH_COLUMN}", operator.ge, since),
    ):
        if name in found.schema.names:
            known = pc.field(name)
            value: Any = pa.scalar(Decimal(bound), _DECIMAL)
            is_within = compare(known.cast(_DECIMAL), value)
            found = found.filter(known.is_null() | is_within)
    # The log has the path as a URL, and the folder of a partition may have escapes.
    return [unquote(path) for path in found.column("path").to_pylist()]


def add_action(file: TaskFile) -> AddAction:
    """Return what a commit says of a file that it adds."""
    return AddAction(
        path=file.path.as_posix(),
        size=file.bytes,
        partition_values=values_of(file.partition),
        modification_time=int(time.time() * 1000),
        data_change=True,
        # As UTF-8: deltalake reads escapes of characters beyond 16 bits as other characters.
        stats=json.dumps(_statistics(file), ensure_ascii=False),
    )


def _statistics(file: TaskFile) -> Mapping[str, object]:
    """Return the row count and the column bounds of a file, in the format of the Delta log."""
    lows: dict[str, object] = {}
    highs: dict[str, object] = {}
    for name, bounds in file.bounds.items():
        found = _bounds(*bounds)
        if found is not None:
            lows[name], highs[name] = found
    return {
        "numRecords": file.rows,
        "minValues": lows,
        "maxValues": highs,
        "nullCount": {**dict.fromkeys(lows, 0), **file.nulls},
    }


def _bounds(low: Any, high: Any) -> tuple[Any, Any] | None:
    """Return bounds as the Delta log has them, or `None` if it cannot have them."""
    match low:
        case datetime():
            return _times(low, high)
        case date():
            return low.isoformat(), high.isoformat()
        case str():
            return low[:_TEXT], high if len(high) <= _TEXT else high[:_TEXT] + _BEYOND
        case float():
            return (low, high) if math.isfinite(low) and math.isfinite(high) else None
        case _:
            return int(low), int(high)  # sequences are decimals if uint64=decimal


def logged_file(table: str, values: Mapping[str, Any], seq: str) -> TaskFile:
    """Return a file as the log of a table describes it. The bounds are 0 if the log has none."""
    first, last = (int(values.get(f"{end}.{seq}") or 0) for end in ("min", "max"))
    rows, size = values["num_records"] or 0, values["size_bytes"]
    return TaskFile(table, Path(values["path"]), rows, first, last, size)


def _times(low: datetime, high: datetime) -> tuple[str, str]:
    """Return both times in milliseconds, the resolution of the Delta log.

    `low` is rounded down and `high` is rounded up, so that the bounds include all values.
    """
    beyond = high + timedelta(microseconds=-high.microsecond % 1000)
    return _milliseconds(low), _milliseconds(beyond)


def _milliseconds(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
