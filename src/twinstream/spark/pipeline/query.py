"""Run the query of one source of a pipeline, release its batches, and restart it after failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from twinstream.spark.pipeline.committed import CommittedBatches
from twinstream.spark.pipeline.land_batch import BatchLander
from twinstream.spark.pipeline.pipeline_events import Ended, Failed, Happening, Landed, Started
from twinstream.spark.pipeline.query_errors import kind_of, sentence, spark_is_gone
from twinstream.spark.pipeline.restarts import Restarts
from twinstream.spark.pipeline.run_options import RunOptions
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.start_point import StartPoint
from twinstream.spark.pipeline.state.batch_log import BatchEntry
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.source.driver_client import Leader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["SourceQuery"]


class SourceQuery:
    """The query of one source, which restarts after failures.

    The runner calls `step` repeatedly, until it returns false. With the option `once`, the
    query ends when it has landed the messages that the stream had when the query started. The
    callback `tell` is called with each event, sometimes from a thread of Spark.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: PipelineConfig,
        source: SourceConfig,
        tell: Callable[[Happening], None],
        options: RunOptions,
    ) -> None:
        self.source: Final = source
        self.error: str | None = None
        """The error that ended the source, or `None`. Errors after which the source restarts are
        not recorded."""
        self._spark: Final = spark
        self._config: Final = config
        self._tell: Final = tell
        self._options: Final = options
        self._state: Final = SourceState.of(config, source)
        self._leader: Final = Leader(source.source_options, options.is_to_end)
        self._start_point: Final = StartPoint(source, options, self._state, self._leader)
        self._committed: Final = CommittedBatches(
            source, self._state, self._leader, options.is_to_end
        )
        self._restarts: Final = Restarts(config, once=options.once)
        self._lander: BatchLander | None = None
        self._query: StreamingQuery | None = None
        self._ended = False

    def step(self) -> bool:
        """Start the query, release its batches, or end it. Return whether the source continues."""
        if self._ended:
            return False
        try:
            if self._query is None:
                if self._restarts.is_due:
                    self._start()
            else:
                # Read `isActive` before the release. If the release came first, the query could
                # commit a last batch and end between the two, and that batch would not be released.
                running = self._query.isActive
                self._release_committed()
                if not running:
                    self._finished(self._query)
        except Exception as error:
            self._failed(error)
        return not self._ended

    @property
    def waits_to_start(self) -> bool:
        """Whether a later call of `step` will start the query, at once or after a pause."""
        return self._query is None and not self._ended

    @property
    def is_starting(self) -> bool:
        """Whether Spark is starting the query."""
        return (
            self._query is not None
            and self._query.isActive
            and str(self._query.status["message"]).startswith("Initializing")
        )

    @property
    def is_between_batches(self) -> bool:
        """Whether a stop now interrupts no batch. Valid only after `hold`."""
        if self._query is None or not self._query.isActive:
            return True
        status = self._query.status
        # A stop may interrupt the planning of a batch, because planning writes no rows. It does not
        # wait for the end of the planning, which takes a minute if the server does not respond.
        is_planning = str(status["message"]).startswith("Getting offsets")
        return is_planning or not status["isTriggerActive"]

    def hold(self) -> None:
        """Land no batch after the current batch.

        With a backlog, Spark begins the next batch at once. Without this call, `stop` would
        interrupt a batch.
        """
        if self._lander is not None:
            self._lander.hold()

    def stop(self) -> None:
        """Stop the query. If this interrupts a batch, the next run finishes the batch."""
        try:
            if self._query is not None:
                self._query.stop()
        except Exception as error:
            if not spark_is_gone(error):
                raise
            self._close()  # `run` has already raised this error
            return
        if self._ended:
            return
        try:
            self._release_committed()
        except Exception as error:
            self._end(error)
        else:
            self._end(None)

    def _start(self) -> None:
        """Start the query when no other command works on the tables.

        If a stop is requested during the wait, the query is not started.
        """
        with self._state.lock.shared(self._options.is_to_end) as granted:
            if granted:
                self._start_query()

    def _start_query(self) -> None:
        (stream,) = self._leader.states()
        state = self._state
        identity = self._start_point.identity(stream)
        state.checkpoint.clear_unfinished()
        position = self._start_point.position(identity, stream)
        self._committed.prepare(position)
        self._lander = BatchLander(
            self.source,
            identity,
            state.checkpoint,
            state.log,
            state.sink,
            state.lock,
            self._on_landed,
        )
        self._query = query = self._begin(identity)
        self._committed.begin(identity.of_query(str(query.id), state.folder))
        self._tell(Started(self.source.name, position, max(0, stream.next - position)))

    def _begin(self, identity: Identity) -> StreamingQuery:
        assert self._lander is not None
        options = {
            **self.source.options,
            "startingOffsets": f'{{"{self.source.stream}": {identity.origin}}}',
        }
        rows = self._spark.readStream.format("jetstream").options(**options).load()
        writer = (
            rows.writeStream.foreachBatch(self._lander)
            .queryName(f"{self._config.name}.{self.source.name}")
            .option("checkpointLocation", f"file://{self._state.folder.checkpoint}")
        )
        if self._options.once:
            return writer.trigger(availableNow=True).start()
        # Use an integer, because a large float would be written with an exponent, which Spark
        # cannot parse.
        pause = round(self._config.every * 1000)
        return writer.trigger(processingTime=f"{pause} milliseconds").start()

    def _on_landed(self, entry: BatchEntry) -> None:
        self._restarts.landed()
        self._tell(Landed(self.source.name, entry))

    def _release_committed(self) -> None:
        released = self._committed.release()
        if released is not None:
            self._tell(released)

    def _finished(self, query: StreamingQuery) -> None:
        error = query.exception()
        if error is None:
            self._end(None)
            return
        own = self._lander.failure if self._lander is not None else None
        self._failed(own or error)

    def _failed(self, error: Exception) -> None:
        if spark_is_gone(error):
            raise error  # all sources must end, not only this source
        query, self._query = self._query, None
        if query is not None:
            query.stop()
        if self._lander is not None:
            self._lander.close()
        pause = self._restarts.failed(error)
        if pause is None:
            self._end(error)
        else:
            self._tell(self._failure(error, pause))

    def _end(self, error: Exception | None) -> None:
        self._ended = True
        self._close()
        if error is None:
            self._tell(Ended(self.source.name))
            return
        self.error = sentence(error)
        self._tell(self._failure(error, None))

    def _close(self) -> None:
        self._leader.close()
        if self._lander is not None:
            self._lander.close()

    def _failure(self, error: Exception, retry_in: float | None) -> Failed:
        code: int | None = getattr(error, "err_code", None)
        return Failed(self.source.name, sentence(error), retry_in, kind_of(error), code)
