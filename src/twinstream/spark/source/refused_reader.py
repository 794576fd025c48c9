"""A reader for a streaming read that was refused. It raises the error.

The source must return this reader and not raise the error itself. PySpark closes the reader after
every error, also if there is no reader, and then reports an undefined variable instead of the
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from twinstream.errors import TwinstreamError

__all__ = ["RefusedReader"]


class RefusedReader(DataSourceStreamReader):
    """A reader whose methods all raise ``error``.

    New queries and resumed queries call different methods first.
    """

    def __init__(self, error: TwinstreamError) -> None:
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
