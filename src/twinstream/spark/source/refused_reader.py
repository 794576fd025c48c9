"""A reader that raises the error for which a streaming read was refused.

PySpark closes the reader after every error, even if the source raised one instead of returning a
reader. The error would then be hidden by PySpark's own error about an undefined variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from twinstream.errors import TwinstreamError

__all__ = ["RefusedReader"]


class RefusedReader(DataSourceStreamReader):
    """Raises ``error`` in every method: new and resumed queries call different ones first."""

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
