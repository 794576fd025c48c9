"""Parquet tables that grow by whole batches: one folder a batch, there completely or not at all."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from js_spark.report import TableReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchTables", "local_url"]

# Readers of Parquet pass over names that begin with an underscore, so half a batch is never seen.
_STAGING: Final = "_staging"


def local_url(path: Path) -> str:
    """Return an absolute path as Spark takes it: a URL, so that it is local whatever the default.

    Not ``Path.as_uri``: Spark takes a percent sign for itself, and ``=`` would become ``%3D``.
    """
    return f"file://{path}"


class BatchTables:
    """Writes the tables of one batch below a landing folder.

    Files are written aside and moved into place with one rename a table. A table of this batch
    that is there already is left as it is: it came from an attempt with the same bounds. What
    attempts that were killed left aside is removed first; ``writer`` names whose that is.
    """

    def __init__(self, root: Path, batch_id: int, writer: str) -> None:
        self._root: Final = root
        self._batch: Final = f"batch_id={batch_id}"
        self._staging: Final = root / _STAGING / f"{writer}.{uuid.uuid4().hex}"
        self._found: list[TableReport] = []
        for left in self._staging.parent.glob(f"{writer}.*"):
            shutil.rmtree(left)

    def has(self, table: str) -> bool:
        """Tell whether the table has this batch already."""
        return (self._root / table / self._batch).exists()

    def write(self, table: str, rows: DataFrame) -> TableReport:
        """Write one table's rows of this batch; ``table`` is a path below the landing folder."""
        target = self._root / table / self._batch
        if not self.has(table):
            aside = self._staging / table
            rows.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(
                local_url(aside)
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            aside.rename(target)
        report = _report(table, self._root / table, target)
        self._found.append(report)
        return report

    @property
    def reports(self) -> tuple[TableReport, ...]:
        """The tables written, in order."""
        return tuple(self._found)

    def close(self) -> None:
        """Remove what was written aside and not moved."""
        shutil.rmtree(self._staging, ignore_errors=True)
        staging = self._staging.parent
        if staging.is_dir() and not any(staging.iterdir()):
            staging.rmdir()


def _report(table: str, folder: Path, batch: Path) -> TableReport:
    files = sorted(batch.glob("*.parquet"))
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return TableReport(name=table, path=str(folder), rows=rows, files=len(files))
