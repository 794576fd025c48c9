"""Write the standard error of Spark's processes to a file instead of the terminal.

Java and its Python processes print a traceback for each failure, even if a second attempt succeeds.
The command reports failures itself.
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

__all__ = ["SparkStderr"]


class SparkStderr:
    """A temporary file for the output of Spark's processes, which only this user can read.

    The file is kept if the command fails and the file contains more than one line.
    """

    def __init__(self) -> None:
        self._number, name = tempfile.mkstemp(prefix="twinstream-spark-", suffix=".log")
        self._file: Final = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self._number)
        # With some options, Java prints one line at its start. A single line explains no failure.
        if isinstance(error, Exception) and self._file.read_bytes().count(b"\n") > 1:
            click.echo(f"What Spark's processes printed is in {self._file}", err=True)
        else:
            self._file.unlink()

    @contextmanager
    def taken(self) -> Generator[None]:
        """Redirect the standard error of processes that start within the block to the file."""
        sys.stderr.flush()
        own = os.dup(2)
        os.dup2(self._number, 2)
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
