"""Run a pipeline: one query per source, and one loop that supervises them until all have ended."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from twinstream.core.log.reporter import Reporter
from twinstream.spark.data_source import register
from twinstream.spark.errors import SparkSourceError
from twinstream.spark.landing.lock import locked
from twinstream.spark.pipeline.pipeline_events import Happening
from twinstream.spark.pipeline.query import SourceQuery
from twinstream.spark.pipeline.query_errors import spark_is_gone
from twinstream.spark.pipeline.run_options import RunOptions
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.running import refuse_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Asked", "run"]

# Seconds between two checks of the queries.
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
    spark: SparkSession,
    config: PipelineConfig,
    *,
    once: bool = False,
    recover: bool = False,
    accept_stream: bool = False,
    accept_subjects: bool = False,
    tell: Callable[[Happening], None] | None = None,
    asked: Asked | None = None,
) -> dict[str, str]:
    """Land all sources. Return the errors of the sources that failed, by the source's name.

    A source that fails is restarted after a pause that doubles each time, unless its error is
    permanent. Events are also logged, by the logger `twinstream.pipeline`.

    Args:
        spark: the session that runs the queries, not a Spark Connect session.
        config: the pipeline.
        once: end when all messages that the streams have at the start are landed. By default, the
            pipeline runs until `asked` is set.
        recover: if a checkpoint is missing, continue where the journal ends.
        accept_stream: continue after the landed batches with a stream of another creation time,
            unless it cannot be a copy of the landed stream. The journal records the decision.
        accept_subjects: continue after the landed batches with the changed subjects of a source.
            Messages that the old subjects skipped are landed only by a replay.
        tell: called with each event, from the calling thread only.
        asked: a flag that requests a stop, such as a `threading.Event`.

    Raises:
        PipelineBusy: while another process works on the folder.
        SparkSourceError: for a Spark Connect session, or if Spark's Java process has ended.
    """
    refuse_connect(spark)
    report: Reporter[Happening] = Reporter(tell, "tell")
    asked = asked or _Never()
    # Spark looks for installed sources only once, in a Python process. If that process failed,
    # Spark does not know the source before this call.
    register(spark)
    events: queue.SimpleQueue[Happening] = queue.SimpleQueue()
    with locked(Folders(config.path).lock, config.path, f"pipeline run of {config.name}"):
        options = RunOptions(
            once=once,
            recover=recover,
            accept_stream=accept_stream,
            accept_subjects=accept_subjects,
            is_to_end=asked.is_set,
        )
        sources = [SourceQuery(spark, config, each, events.put, options) for each in config.sources]
        try:
            _supervise(sources, events, report, asked)
        except Exception as error:
            if not spark_is_gone(error):
                raise
            raise SparkSourceError(
                "Spark's Java process has ended; the next run finishes the batches it had begun"
            ) from error
        finally:
            _stop(sources)
            _pass_on(events, report)
    return {each.source.name: each.error for each in sources if each.error is not None}


def _supervise(
    sources: list[SourceQuery],
    events: queue.SimpleQueue[Happening],
    report: Reporter[Happening],
    asked: Asked,
) -> None:
    while not asked.is_set():
        busy = [_step(each, sources) for each in sources]
        _pass_on(events, report)
        if not any(busy):
            return
        time.sleep(_PAUSE)
    for each in sources:
        each.hold()
    deadline = time.monotonic() + _PATIENCE
    while not all(each.is_between_batches for each in sources) and time.monotonic() < deadline:
        _pass_on(events, report)
        time.sleep(_PAUSE)


def _step(source: SourceQuery, sources: list[SourceQuery]) -> bool:
    """Do the next step of a source, unless it would start a query while another query starts.

    Returns whether the source continues. The Python process of a query must start within ten
    seconds. If several processes start at the same time on a busy machine, they exceed this limit.
    """
    if source.waits_to_start and any(each.is_starting for each in sources):
        return True
    return source.step()


def _stop(sources: list[SourceQuery]) -> None:
    for each in sources:
        each.stop()


def _pass_on(events: queue.SimpleQueue[Happening], report: Reporter[Happening]) -> None:
    while not events.empty():
        report(events.get())
