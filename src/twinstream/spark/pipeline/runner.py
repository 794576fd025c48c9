"""Run a pipeline: a query a source, looked after in one loop until all have ended."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from twinstream.core.log.reporter import Reporter
from twinstream.spark.session.connect import refuse_connect
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.config import PipelineConfig
from twinstream.spark.pipeline.folders import Folders
from twinstream.spark.pipeline.happenings import Happening
from twinstream.spark.pipeline.query import SourceQuery
from twinstream.spark.pipeline.trouble import spark_is_gone
from twinstream.spark.source.source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Asked", "run"]

_PAUSE: Final = 0.1
"""Seconds between two looks at the queries."""

_PATIENCE: Final = 60.0
"""Seconds that a batch gets to end when somebody asks to stop."""


class Asked(Protocol):
    """Whether somebody asked to stop; `threading.Event` is one."""

    def is_set(self) -> bool:
        """Tell it."""
        ...


class _Never:
    def is_set(self) -> bool:
        return False


def run(
    spark: SparkSession,
    config: PipelineConfig,
    *,
    once: bool = False,
    recover: bool = False,
    accept_stream: bool = False,
    tell: Callable[[Happening], None] | None = None,
    asked: Asked | None = None,
) -> dict[str, str]:
    """Land all sources; returns those that ended with an error, with the error.

    With ``once`` it ends when all that the streams hold at the start is landed; otherwise it goes
    on until ``asked``. A source that fails is started again after a pause that doubles, unless the
    same error would come again. With ``recover`` it goes on where the journal ends if a checkpoint
    is gone. With ``accept_stream`` it goes on behind what is landed with a stream that was made
    again, if nothing shows that it is no copy; a line in the journal says so. ``tell`` is called
    only from the calling thread; what happens is also logged, by the logger
    ``twinstream.pipeline``. Raises `PipelineBusy` while another process works on the folder, and
    `SparkSourceError` for a session of Spark Connect, or when Spark's Java process has ended.
    """
    refuse_connect(spark)
    report: Reporter[Happening] = Reporter(tell, "tell")
    asked = asked or _Never()
    # Spark looks for sources once only; if that process failed, the pipeline runs all the same.
    register(spark)
    heard: queue.SimpleQueue[Happening] = queue.SimpleQueue()
    with locked(Folders(config.path).lock, config.path, f"pipeline run of {config.name}"):
        sources = [
            SourceQuery(
                spark,
                config,
                each,
                heard.put,
                once=once,
                recover=recover,
                accept_stream=accept_stream,
                is_to_end=asked.is_set,
            )
            for each in config.sources
        ]
        try:
            _look_after(sources, heard, report, asked)
        except Exception as error:
            if not spark_is_gone(error):
                raise
            raise SparkSourceError(
                "Spark's Java process has ended; what it had begun is finished by the next run"
            ) from error
        finally:
            _stop(sources)
            _pass_on(heard, report)
    return {each.source.name: each.error for each in sources if each.error is not None}


def _look_after(
    sources: list[SourceQuery],
    heard: queue.SimpleQueue[Happening],
    report: Reporter[Happening],
    asked: Asked,
) -> None:
    while not asked.is_set():
        busy = [_step(each, sources) for each in sources]
        _pass_on(heard, report)
        if not any(busy):
            return
        time.sleep(_PAUSE)
    for each in sources:
        each.hold()
    deadline = time.monotonic() + _PATIENCE
    while not all(each.is_between_batches for each in sources) and time.monotonic() < deadline:
        _pass_on(heard, report)
        time.sleep(_PAUSE)


def _step(source: SourceQuery, sources: list[SourceQuery]) -> bool:
    """Do what is due, but begin no query while another one begins.

    Spark gives the Python process of a query ten seconds to start; several at once would not
    make it on a busy machine.
    """
    if source.waits_to_start and any(each.is_starting for each in sources):
        return True
    return source.step()


def _stop(sources: list[SourceQuery]) -> None:
    for each in sources:
        each.stop()


def _pass_on(heard: queue.SimpleQueue[Happening], report: Reporter[Happening]) -> None:
    while not heard.empty():
        report(heard.get())
