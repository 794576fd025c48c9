"""A reader for a streaming read whose options were refused. Its methods raise the error.

The source must return this reader instead of raising the error itself. PySpark closes the reader
after any error. If the source has returned no reader, PySpark fails there, and reports an undefined
variable instead of the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from twinstream.errors import TwinstreamError

__all__ = ["RefusedReader"]


class RefusedReader(DataSourceStreamReader):
    """A reader whose methods that plan and read batches raise `error`.

    Each of them raises it, because a new query and a resumed query call different methods first.
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
