"""Keeps what Spark's processes print in a file, so that it does not spoil the board.

Java and the Python processes below it print a traceback for each failure, even for those that a
second attempt mends. The command itself says in one line what failed.
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
    """A file that only this user can read; if the command fails, it is kept, and named."""

    def __init__(self) -> None:
        self._number, name = tempfile.mkstemp(prefix="twinstream-spark-", suffix=".log")
        self._file: Final = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self._number)
        # A single line is no failure: Java prints one when it starts with some options.
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
