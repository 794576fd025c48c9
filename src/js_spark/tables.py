"""Parquet tables that grow by whole batches: one folder a batch, there completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from js_spark.report import TableReport
from js_spark.staging import Staging, files_in
from js_spark.table_fit import check_fit

__all__ = ["BatchTables", "local_url"]

# Readers of Parquet pass over names that begin with an underscore, so half a batch is never seen.
_STAGING: Final = "_staging"


def local_url(path: Path) -> str:
    """Return an absolute path as Spark takes it: a URL, so that it is local whatever the default.

    Not ``Path.as_uri``: Spark takes a percent sign for itself, and ``=`` would become ``%3D``.
    """
    return f"file://{path}"


class BatchTables:
    """Puts files into the tables of one batch below a landing folder.

    The files are written into ``folder`` first and moved into place with one rename a table. A
    table of this batch that is there already is left as it is: it came from an attempt with the
    same bounds. ``writer`` names whose attempts they are.
    """

    def __init__(self, root: Path, batch_id: int, writer: str) -> None:
        self._root: Final = root
        self._batch: Final = f"batch_id={batch_id}"
        self._staging: Final = Staging(root / _STAGING, writer)
        self._found: list[TableReport] = []

    @property
    def folder(self) -> Path:
        """Where files of the batch are written before they are put into tables."""
        return self._staging.folder

    def put(self, table: str, files: Sequence[Path]) -> None:
        """Put the files of a table's rows into it, a path below the landing folder."""
        target = self._root / table / self._batch
        if not target.exists():
            check_fit(self._root / table, files)
            self._staging.put(files, target)
        self._found.append(_report(table, self._root / table, target))

    @property
    def reports(self) -> tuple[TableReport, ...]:
        """The tables put to, in order."""
        return tuple(self._found)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the batch in all its tables."""
        folders = [self._root / each.name / self._batch for each in self._found]
        return tuple(file for folder in folders for file in files_in(folder))

    def close(self) -> None:
        """Remove what was written and not put anywhere."""
        self._staging.close()


def _report(table: str, folder: Path, batch: Path) -> TableReport:
    files = files_in(batch)
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return TableReport(name=table, path=str(folder), rows=rows, files=len(files))
