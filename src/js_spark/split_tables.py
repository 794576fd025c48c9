"""Divide the rows of a batch among tables: one for each kind, one for what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from js_spark.events import EVENT_COLUMNS
from js_spark.layout import ERROR, EXTRA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DEAD_LETTERS", "OTHER_EVENTS", "TableWriter", "write_events", "write_json", "write_raw"]

DEAD_LETTERS: Final = "dead_letters"
"""Table of messages that do not fit, with the reason and the payload."""

OTHER_EVENTS: Final = "other_events"
"""Table of events whose type this release does not know; the document is in ``_extra``."""

_RAW: Final = "_raw"


class TableWriter(Protocol):
    """Writes the tables of one batch."""

    def has(self, table: str) -> bool:
        """Tell whether the table has the batch already, so that writing does nothing."""
        ...

    def write(self, table: str, rows: DataFrame) -> object:
        """Write one table's rows of the batch."""
        ...


def write_raw(tables: TableWriter, rows: DataFrame, table: str) -> None:
    """Write messages as they are."""
    tables.write(table, rows)


def write_json(tables: TableWriter, rows: DataFrame, table: str, dead: str) -> None:
    """Write typed rows, and dead letters where there are any.

    The misfits are counted while the rows are written, so the range is read a second time only
    when there are some, or when an attempt before this one wrote the rows.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    fits = f.col(ERROR).isNull()
    if tables.has(table):
        # Nothing will run that could be watched; an observation would be waited for in vain.
        tables.write(table, rows.filter(fits).drop(ERROR, _RAW))
        has_misfits = not rows.filter(~fits).isEmpty()
    else:
        counted = Observation()
        watched = rows.observe(counted, f.count(ERROR).alias("misfits"))
        tables.write(table, watched.filter(fits).drop(ERROR, _RAW))
        has_misfits = bool(counted.get["misfits"])
    if has_misfits:
        _write_dead(tables, rows, dead)


def write_events(tables: TableWriter, rows: DataFrame, dead: str, prefix: str = "") -> None:
    """Write one table for each kind of event that occurs, and dead letters.

    ``prefix`` is what the names of the tables of events begin with.
    """
    from pyspark.sql import functions as f

    kept = rows.persist()
    try:
        fits = kept.filter(f.col(ERROR).isNull())
        found = {row["kind"] for row in fits.select("kind").distinct().collect()}
        known = [name for name in EVENT_COLUMNS.names if name in found and name != "kind"]
        for kind in known:
            own = [f.col(f"{kind}.{name}").alias(name) for name in _members(kind)]
            of_kind = fits.filter(f.col("kind") == kind).select(*own, EXTRA, *_beside(rows))
            tables.write(prefix + kind, of_kind.coalesce(1))
        if found - set(known):
            others = fits.filter(~f.col("kind").isin(known)).select("kind", EXTRA, *_beside(rows))
            tables.write(prefix + OTHER_EVENTS, others.coalesce(1))
        if not kept.filter(f.col(ERROR).isNotNull()).isEmpty():
            _write_dead(tables, kept, dead)
    finally:
        kept.unpersist()


def _write_dead(tables: TableWriter, rows: DataFrame, table: str) -> None:
    from pyspark.sql import functions as f

    columns = [*_beside(rows), ERROR, _RAW]
    letters = rows.filter(f.col(ERROR).isNotNull()).select(*columns)
    tables.write(table, letters.coalesce(1))


def _beside(rows: DataFrame) -> list[str]:
    """Return the columns of the message itself."""
    wanted = ("_stream", "_subject", "_seq", "_timestamp", "_headers", "_batch_id")
    return [name for name in wanted if name in rows.columns]


def _members(kind: str) -> list[str]:
    from pyspark.sql.types import StructType

    columns = EVENT_COLUMNS[kind].dataType
    assert isinstance(columns, StructType)
    return columns.names
