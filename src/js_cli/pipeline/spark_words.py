"""What Spark's processes print: kept in a file, for it would run across the board.

Java and the Python processes below it print the traceback of each failure, also of those that
another attempt mends. The command itself says in a line what failed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import click

__all__ = ["SparkWords"]


class SparkWords:
    """A file of this user alone; it stays, and is named, where the command fails."""

    def __init__(self) -> None:
        self._number, name = tempfile.mkstemp(prefix="twinstream-spark-", suffix=".log")
        self._file: Final = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self._number)
        # Java greets some versions of itself in a line.
        if isinstance(error, Exception) and self._file.read_bytes().count(b"\n") > 1:
            click.echo(f"What Spark's processes printed is in {self._file}", err=True)
        else:
            self._file.unlink()

    @contextmanager
    def taken(self) -> Generator[None]:
        """Let the processes that are started meanwhile write their errors to the file."""
        sys.stderr.flush()
        own = os.dup(2)
        os.dup2(self._number, 2)
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
