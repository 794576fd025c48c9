"""A streaming read that was refused before it began, as a reader that says so when it is asked.

PySpark closes the reader behind every error, also where there is none yet: what a source raises
instead of returning one ends in PySpark's own complaint about a missing variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from twinstream.spark.errors import SparkSourceError

__all__ = ["RefusedReader"]


class RefusedReader(DataSourceStreamReader):
    """Raises ``error`` at whatever is asked first: a new query begins otherwise than an old one."""

    def __init__(self, error: SparkSourceError) -> None:
        self.error: Final = error

    def initialOffset(self) -> NoReturn:  # noqa: N802
        """Raise the error."""
        raise self.error

    def latestOffset(self) -> NoReturn:  # type: ignore[override]  # noqa: N802
        """Raise the error."""
        raise self.error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:
        """Raise the error."""
        raise self.error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Raise the error."""
        raise self.error
