"""Read row counts and column bounds from the footers of Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import frozen

from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.task_report import Bounds

__all__ = ["Footer"]


@frozen
class Footer:
    """The footer of one Parquet file."""

    path: Path
    metadata: pq.FileMetaData

    @classmethod
    def of(cls, path: Path, lake: ObjectFolder | None = None) -> Footer:
        """Read and return the footer of a file. If `lake` is given, the path is relative to it."""
        return cls(path, pq.read_metadata(str(path), filesystem=arrow_files(lake)))

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        return int(self.metadata.num_rows)

    def bounds(self, column: str) -> Bounds | None:
        """Return the bounds of a column, or `None` if the file has no such column or no value.

        If a row group has no statistics, because another program wrote the file, the values of the
        column are read.
        """
        at = self._index(column)
        if at is None:
            return None
        found: list[Bounds] = []
        for number in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(number)
            if not group.num_rows:
                continue
            known = group.column(at).statistics
            if known is None or not known.has_min_max:
                return self._read(column)
            found.append((known.min, known.max))
        if not found:
            return None
        return min(low for low, _ in found), max(high for _, high in found)

    def written(self, column: str) -> tuple[Bounds | None, int | None]:
        """Return the bounds and the number of nulls of a column, without reading its values.

        The bounds are `None` without values, or if they are unknown: long texts have none. The
        number is `None` without such a column.
        """
        at = self._index(column)
        if at is None:
            return None, None
        found: list[Bounds] = []
        nulls, is_known = 0, True
        for number in range(self.metadata.num_row_groups):
            known = self.metadata.row_group(number).column(at).statistics
            if known is None or not known.has_null_count:
                return None, None
            nulls += known.null_count
            if known.has_min_max:
                found.append((known.min, known.max))
            elif known.num_values:
                is_known = False
        if not found or not is_known:
            return None, nulls
        return (min(low for low, _ in found), max(high for _, high in found)), nulls

    def _index(self, column: str) -> int | None:
        schema = self.metadata.schema
        return next((at for at in range(len(schema)) if schema.column(at).path == column), None)

    def _read(self, column: str) -> Bounds | None:
        rows = pq.ParquetFile(self.path).read(columns=[column]).column(column)
        ends = pc.min_max(rows).as_py()
        return None if ends["min"] is None else (ends["min"], ends["max"])
