"""Run the query of one source of a pipeline, release its batches, and restart it after failures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from twinstream.core.deadline import Backoff
from twinstream.spark.pipeline.land_batch import BatchLander
from twinstream.spark.pipeline.pipeline_events import (
    Ended,
    Failed,
    Happening,
    Landed,
    Released,
    Started,
)
from twinstream.spark.pipeline.query_errors import is_lasting, kind_of, sentence, spark_is_gone
from twinstream.spark.pipeline.recover import accepted, check_subjects, recovered, refiltered
from twinstream.spark.pipeline.release import release_of
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.batch_log import BatchEntry, BatchLog
from twinstream.spark.pipeline.state.checkpoint import Checkpoint
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.table_lock import TableLock
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from twinstream.spark.source.stream_state import StreamState

__all__ = ["SourceQuery"]


class SourceQuery:
    """The query of one source, which restarts after failures.

    The runner calls :meth:`step` repeatedly, until it returns false. With ``once``, the query ends
    when it has landed the messages that the stream had when the query started. The callback
    ``tell`` is called with each event, sometimes from a thread of Spark. ``is_to_end`` returns true
    after a stop was requested. From then on, failed requests are not retried, and waits for a lock
    end.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: PipelineConfig,
        source: SourceConfig,
        tell: Callable[[Happening], None],
        *,
        once: bool,
        recover: bool,
        accept_stream: bool,
        accept_subjects: bool,
        is_to_end: Callable[[], bool],
    ) -> None:
        self.source: Final = source
        self.error: str | None = None
        """The error that ended the source, or ``None``. Errors after which the source restarts are
        not recorded."""
        self._spark: Final = spark
        self._config: Final = config
        self._tell: Final = tell
        self._once: Final = once
        self._recover: Final = recover
        self._accept: Final = accept_stream
        self._accept_subjects: Final = accept_subjects
        self._folder: Final = Folders(config.path).source(source.name)
        self._log: Final = BatchLog(self._folder.journal)
        self._checkpoint: Final = Checkpoint(self._folder.checkpoint, source.stream)
        self._sink: Final = open_sink(config)
        self._lock: Final = TableLock(Folders(config.path))
        self._is_to_end: Final = is_to_end
        self._release: Final = release_of(source, self._sink, self._log)
        self._leader: Final = Leader(source.source_options, is_to_end)
        self._lander: BatchLander | None = None
        self._query: StreamingQuery | None = None
        self._identity: Identity | None = None
        self._released: int | None = None
        self._failures = 0
        self._start_at = 0.0
        self._ended = False

    def step(self) -> bool:
        """Start the query, release its batches, or end it. Return whether the source continues."""
        if self._ended:
            return False
        try:
            if self._query is None:
                if time.monotonic() >= self._start_at:
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
        with self._lock.shared(self._is_to_end) as granted:
            if granted:
                self._start_query()

    def _start_query(self) -> None:
        (state,) = self._leader.states()
        stored = Identity.load(self._folder)
        last = self._log.last()
        if stored is not None and last is None and stored.created != state.created:
            stored = None  # the stream was re-created before the first batch was landed
        identity = stored or Identity.first(self.source, state).save(self._folder)
        about = (self._folder, self._sink, state, self._leader.time_at)
        if self._accept:
            identity = accepted(self.source, identity, *about)
        if self._recover:
            identity = recovered(self.source, identity, *about)
        if self._accept_subjects:
            identity = refiltered(self.source, identity, *about, self._leader.seq_from)
        identity.check(self.source, self._checkpoint, landed=last is not None)
        check_subjects(self.source, identity, self._folder)
        self._checkpoint.clear_unfinished()
        position = self._position(identity, state)
        self._release.prepare(self._leader.jet(), position)
        self._lander = BatchLander(
            self.source,
            identity,
            self._checkpoint,
            self._log,
            self._sink,
            self._lock,
            self._on_landed,
        )
        self._query = self._begin(identity)
        self._identity = identity.of_query(str(self._query.id), self._folder)
        self._tell(Started(self.source.name, position, max(0, state.next - position)))

    def _position(self, identity: Identity, state: StreamState) -> int:
        """Return the first sequence that is not landed.

        If the stream was re-created or restored to an earlier state, its messages below this
        sequence are perhaps not landed and must not be released. In this case, raises
        `DataLossError`, or with ``failOnDataLoss = false`` returns the stream's first sequence.
        """
        committed = self._checkpoint.last_committed()
        position = Position(identity.origin, identity.created)
        if committed >= 0:
            position = self._checkpoint.bounds(committed, identity.origin).end
        continuity = Continuity(self.source.source_options, self._leader.time_at)
        return continuity.stands_at(position, state)

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
            .option("checkpointLocation", f"file://{self._folder.checkpoint}")
        )
        if self._once:
            return writer.trigger(availableNow=True).start()
        # Use an integer, because a large float would be written with an exponent, which Spark
        # cannot parse.
        pause = round(self._config.every * 1000)
        return writer.trigger(processingTime=f"{pause} milliseconds").start()

    def _on_landed(self, entry: BatchEntry) -> None:
        self._failures = 0
        self._tell(Landed(self.source.name, entry))

    def _release_committed(self) -> None:
        """Release the messages up to the last batch that Spark has committed."""
        committed = self._checkpoint.last_committed()
        if self.source.commit == "none" or committed < 0 or self._identity is None:
            return
        number = self._identity.base + committed
        if self._released == number:
            return
        entry = self._log.known(number)
        if entry is None:
            return
        with self._lock.shared(self._is_to_end) as granted:
            if not granted:
                return  # the next run releases the batch
            removed = self._release.release(self._leader.jet(), entry)
        self._released = number
        self._tell(Released(self.source.name, self.source.commit, entry.end, removed))

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
        most = self._config.restarts.most
        if most is None and self._once:
            most = 5
        self._failures += 1
        if is_lasting(error) or (most is not None and self._failures > most):
            self._end(error)
            return
        restarts = self._config.restarts
        pause = Backoff(restarts.first, restarts.longest).pause(self._failures)
        self._start_at = time.monotonic() + pause
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
