"""Run a pipeline: a thread per source, and one loop that supervises them until all have ended."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from twinstream.core.log.reporter import Reporter
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.engines import engine_of
from twinstream.spark.pipeline.pipeline_events import Happening
from twinstream.spark.pipeline.run_options import RunOptions
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.source_run import SourceRun
from twinstream.spark.pipeline.tables.open_sink import open_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Asked", "run"]

# Seconds between two checks of the sources.
_PAUSE: Final = 0.1

# The maximum number of seconds to wait for running batches after a stop was requested.
_PATIENCE: Final = 60.0


class Asked(Protocol):
    """A flag that requests a stop, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether a stop was requested."""
        ...


class _Never:
    def is_set(self) -> bool:
        return False


def run(
    spark: SparkSession | None,
    config: PipelineConfig,
    *,
    once: bool = False,
    accept_stream: bool = False,
    accept_subjects: bool = False,
    tell: Callable[[Happening], None] | None = None,
    asked: Asked | None = None,
) -> dict[str, str]:
    """Land all sources. Return the errors of the sources that failed, by the source's name.

    A source that fails is restarted after a pause that doubles each time, unless its error is
    permanent. Events are also logged, by the logger `twinstream.pipeline`.

    Args:
        spark: the session that runs the tasks, not a Spark Connect session. It is not used, and may
            be `None`, if the configuration has `engine = "local"`.
        config: the pipeline.
        once: end when all messages that the streams have at the start are landed. By default, the
            pipeline runs until `asked` is set.
        accept_stream: continue after the landed batches with a stream of another creation time,
            unless it cannot be a copy of the landed stream. The journal records the decision.
        accept_subjects: continue after the landed batches with the changed subjects of a source.
            Messages that the old subjects skipped are landed only by a replay.
        tell: called with each event, from the calling thread only.
        asked: a flag that requests a stop, such as a `threading.Event`. Other threads check it,
            too.

    Raises:
        PipelineBusy: while another process works on the folder.
        SparkSourceError: for a Spark Connect session or no session, for Delta or Iceberg
            tables without their package, or if Spark's Java process has ended.
    """
    report: Reporter[Happening] = Reporter(tell, "tell")
    asked = asked or _Never()
    events: queue.SimpleQueue[Happening] = queue.SimpleQueue()
    with (
        locked(Folders.of(config.path).lock, config.path, f"pipeline run of {config.name}"),
        engine_of(spark, config) as engine,
    ):
        open_sink(config)  # a source, which opens it again, would restart after an error in vain
        options = RunOptions(
            once=once,
            accept_stream=accept_stream,
            accept_subjects=accept_subjects,
            is_to_end=asked.is_set,
        )
        sources = [SourceRun(engine, config, each, events.put, options) for each in config.sources]
        try:
            for each in sources:
                each.start()
            _supervise(sources, events, report, asked)
        finally:
            _stop(sources)
            _report_all(events, report)
    _raise_broken(sources)
    return {each.source.name: each.error for each in sources if each.error is not None}


def _supervise(
    sources: list[SourceRun],
    events: queue.SimpleQueue[Happening],
    report: Reporter[Happening],
    asked: Asked,
) -> None:
    """Report events until all sources have ended, the engine is gone, or a stop is requested.

    After a request to stop, wait for the current batches, but not longer than `_PATIENCE`.
    """
    while not asked.is_set():
        _report_all(events, report)
        if all(each.is_over for each in sources) or any(each.broken for each in sources):
            return
        time.sleep(_PAUSE)
    for each in sources:
        each.hold()
    deadline = time.monotonic() + _PATIENCE
    while not all(each.is_between_batches for each in sources) and time.monotonic() < deadline:
        _report_all(events, report)
        time.sleep(_PAUSE)


def _stop(sources: list[SourceRun]) -> None:
    for each in sources:
        each.hold()
    for each in sources:
        each.stop()


def _raise_broken(sources: list[SourceRun]) -> None:
    for each in sources:
        if each.broken is not None:
            raise SparkSourceError(
                "Spark's Java process has ended; the next run finishes the batches it had begun"
            ) from each.broken


def _report_all(events: queue.SimpleQueue[Happening], report: Reporter[Happening]) -> None:
    while not events.empty():
        report(events.get())
