"""Streaming queries that go on when Spark gives the process which plans them too little time.

Spark waits ten seconds for its start, which a busy machine may need for other things. The query
ends before it has planned a batch, so it can be started again with the same checkpoint. This module
needs PySpark alone, so that programs on Spark Connect can use it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.errors import PySparkException

from tests.soak import LONGEST

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["TOO_LATE", "begun", "finished", "patiently"]

_T = TypeVar("_T")

TOO_LATE: Final = "waiting for the Python worker to connect back"
"""What Spark says of a process that did not connect in time."""


def patiently(run: Callable[[], _T]) -> _T:
    """Return the result of a function with a streaming query; call it again after a late start."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        try:
            return run()
        except PySparkException as error:
            if TOO_LATE not in str(error):
                raise
    raise AssertionError(f"the query's process did not start in time, in {LONGEST} s")


def finished(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Return a query that has ended. `start` starts it, always with the same checkpoint."""

    def run() -> StreamingQuery:
        query = start()
        try:
            assert query.awaitTermination(LONGEST), "the query does not end"
        finally:
            query.stop()
        error = query.exception()
        if error is not None:
            raise error
        return query

    return patiently(run)


def begun(start: Callable[[str], StreamingQuery], folder: Path) -> StreamingQuery:
    """Return a query that has read what is there.

    `start` starts a new one with a checkpoint, which is always another one in a folder: queries in
    memory refuse one that was used.
    """

    def run() -> StreamingQuery:
        query = start(str(folder / uuid.uuid4().hex))
        try:
            query.processAllAvailable()
        except BaseException:
            query.stop()
            raise
        return query

    return patiently(run)
