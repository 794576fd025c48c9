"""Write the output of Spark's processes to a file, so that it does not disturb the display.

Java and its Python processes print a traceback for each failure, even if a second attempt succeeds.
The command itself reports failures in one line.
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
    """A file that only this user can read. It is kept if the command fails."""

    def __init__(self) -> None:
        self._number, name = tempfile.mkstemp(prefix="twinstream-spark-", suffix=".log")
        self._file: Final = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self._number)
        # A single line is not a failure: Java prints one when it starts with some options.
        if isinstance(error, Exception) and self._file.read_bytes().count(b"\n") > 1:
            click.echo(f"What Spark's processes printed is in {self._file}", err=True)
        else:
            self._file.unlink()

    @contextmanager
    def taken(self) -> Generator[None]:
        """Redirect the standard error of processes that start meanwhile to the file."""
        sys.stderr.flush()
        own = os.dup(2)
        os.dup2(self._number, 2)
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
