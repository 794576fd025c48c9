"""Run a source of a pipeline in a thread: land its batches, release them, restart after errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from twinstream.core.deadline import Deadline
from twinstream.lake.engine import Engine
from twinstream.lake.entry import BatchEntry
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.objects.store import ObjectStore
from twinstream.spark.errors import PipelineBusy
from twinstream.spark.landing.staging import remove_attempts
from twinstream.spark.pipeline.accept import accept_stream, accept_subjects, check_subjects
from twinstream.spark.pipeline.letters.finish import finish_before_run
from twinstream.spark.pipeline.located_source import located_source
from twinstream.spark.pipeline.pipeline_events import Ended, Failed, Happening, Landed, Started
from twinstream.spark.pipeline.releases import Releases
from twinstream.spark.pipeline.restarts import Restarts
from twinstream.spark.pipeline.run_errors import is_lasting, kind_of, sentence, spark_is_gone
from twinstream.spark.pipeline.run_options import RunOptions
from twinstream.spark.pipeline.settings.config import PipelineConfig, SourceConfig
from twinstream.spark.pipeline.source_batches import SourceBatches
from twinstream.spark.pipeline.start_point import StartPoint
from twinstream.spark.pipeline.state.landed_rows import possible_tables
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.pipeline.tables.source_columns import refuse_old_columns
from twinstream.spark.source.driver_client import Leader

__all__ = ["SourceRun"]

# Seconds that `stop` waits for the thread, after it has ended the tasks and closed the connection.
_JOIN_TIMEOUT: Final = 10.0
# Seconds after which `stop` ends the tasks once more.
_CANCEL_INTERVAL: Final = 0.2


class SourceRun:
    """The run of one source, which restarts after failures.

    With the option `once`, it ends when the messages are landed that the stream had at its start.
    The callback `tell` is called with each event, in the thread of the source or in that of `stop`.
    """

    def __init__(
        self,
        engine: Engine,
        config: PipelineConfig,
        source: SourceConfig,
        tell: Callable[[Happening], None],
        options: RunOptions,
    ) -> None:
        """Prepare the run. `start` starts its thread."""
        self.source = source
        self.error: str | None = None
        """The error that ended the source, or `None`. Errors after which the source restarts are
        not recorded."""
        self.broken: Exception | None = None
        """The error that ends the whole run: the engine is gone."""
        self._engine: Final = engine
        self._config: Final = config
        self._tell: Final = tell
        self._options: Final = options
        self._leader = Leader(source.source_options, self._is_to_end)
        self._restarts: Final = Restarts(config, once=options.once)
        self._is_stopping: Final = threading.Event()
        self._is_landing = False
        self._batches: SourceBatches | None = None
        self._ending: Final = threading.Lock()
        self._is_over = False
        # A daemon, because it may wait for a server that does not respond.
        self._thread: Final = threading.Thread(
            target=self._run, name=f"twinstream-{source.name}", daemon=True
        )

    def start(self) -> None:
        """Start the thread of the source."""
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the source has ended."""
        return self._is_over

    @property
    def is_between_batches(self) -> bool:
        """Whether a stop now interrupts no batch. Valid only after `hold`."""
        return self._is_over or not self._is_landing

    def hold(self) -> None:
        """Land no batch after the current batch, and then end."""
        self._is_stopping.set()

    def stop(self) -> None:
        """End the source. If this interrupts a batch, the next run finishes the batch."""
        self.hold()
        self._cancel()
        self._leader.close()
        deadline = Deadline.after(_JOIN_TIMEOUT)
        while self._thread.is_alive() and not deadline.expired():
            self._thread.join(_CANCEL_INTERVAL)
            # The batch may have started its tasks only now.
            self._cancel()
        self._end(None)

    def _cancel(self) -> None:
        """End the tasks of the current batch that have started."""
        batches = self._batches
        if self._is_landing and batches is not None:
            try:
                batches.cancel()
            except Exception as error:
                if not spark_is_gone(error):
                    raise

    def _is_to_end(self) -> bool:
        return self._is_stopping.is_set() or self._options.is_to_end()

    def _run(self) -> None:
        try:
            self._land_until_end()
        finally:
            # Does nothing after a usual end. Otherwise the run would wait for the source for ever.
            self._end(RuntimeError("the thread of the source has ended; please report this"))

    def _land_until_end(self) -> None:
        """Land the source until its end, and start again after failures."""
        while True:
            try:
                self._land_all()
            except Exception as error:
                if self._config.engine == "spark" and spark_is_gone(error):
                    self.broken = error
                    self._end(None, quietly=True)
                    return
                if not self._continues_after(error):
                    return
            else:
                self._end(None)
                return

    def _continues_after(self, error: Exception) -> bool:
        """Wait for the restart after an error. Return false if the source has ended instead."""
        if self._is_to_end():
            # The stop has interrupted the batch or its planning, or a retry is of no use.
            self._end(error if is_lasting(error) else None)
            return False
        pause = self._restarts.failed(error)
        if pause is None:
            self._end(error)
            return False
        self._report(self._failure(error, pause))
        self._wait(pause)
        return True

    def _land_all(self) -> None:
        """Land and release the batches that are due, until the end of the source or a stop.

        With the option `once`, the source ends when no further batch is due.
        """
        state = SourceState.of(self._config, self.source)
        finish_before_run(self._config, state)
        self._locate()
        releases = Releases(self.source, state, self._leader, self._is_to_end)
        try:
            with state.lock.shared(self._is_to_end) as granted:
                # The lock is not granted if a stop was requested while another command held it.
                if not granted or self._is_to_end():
                    return
                lander = self._begin(state, releases)
            self._release(releases)  # an earlier run may have ended between a batch and its release
            while not self._is_to_end():
                began = time.monotonic()
                entry = self._land_due(state, lander)
                if entry is not None:
                    self._restarts.landed()
                    self._report(Landed(self.source.name, entry))
                    self._release(releases)
                elif self._options.once:
                    return
                if not self._options.once:
                    self._wait(began + self._config.every - time.monotonic())
        finally:
            batches, self._batches = self._batches, None
            if batches is not None:
                batches.close()
            self._leader.close()

    def _locate(self) -> None:
        """Look up the prefix of the keys if the source is a bucket."""
        found = located_source(self.source)
        if found is not self.source:
            self.source, self._leader = found, Leader(found.source_options, self._is_to_end)

    def _begin(self, state: SourceState, releases: Releases) -> BatchLander:
        """Find where the source continues, and report it. Return the lander of its batches."""
        source, journal, options = self.source, state.journal, self._options
        store = state.folders.store
        if isinstance(store, ObjectStore):
            store.check()
        refuse_old_columns(state.sink, source, possible_tables(source, state.sink))
        (stream,) = self._leader.states()
        start = StartPoint(source, journal, self._leader)
        origin = start.origin(stream)
        # The lock of the run is held, so no other driver has files there.
        remove_attempts(state.folders.staging, source.name)
        batches = SourceBatches(
            source, origin, state.sink, self._engine, self._leader, Leader(source.source_options)
        )
        may_land = partial(self._wait_for_tables, state)
        self._batches, lander = batches, BatchLander(journal, batches, may_land)
        if options.accept_stream:
            accept_stream(journal, batches, stream, self._leader.time_at)
        if options.accept_subjects:
            lookups = self._leader.time_at, self._leader.seq_from
            accept_subjects(source, journal, batches, origin, stream, *lookups)
        check_subjects(source, journal)
        position = start.position(origin, stream)
        releases.prepare(position)
        self._report(Started(source.name, position, max(0, stream.next - position)))
        if options.once:
            batches.aim_at_end()
        return lander

    def _land_due(self, state: SourceState, lander: BatchLander) -> BatchEntry | None:
        """Land the batch that is due. Return its entry, or `None` if none is due or at a stop."""
        plan = lander.due()
        if plan is None:
            return None
        with state.lock.shared(self._is_to_end) as granted:
            if not granted:
                return None
            self._is_landing = True
            try:
                # A stop that has seen no landing must not be followed by one.
                return None if self._is_stopping.is_set() else lander.land(plan)
            finally:
                self._is_landing = False

    def _wait_for_tables(self, state: SourceState) -> None:
        """Wait until no command has the tables alone. Raises `PipelineBusy` at a stop."""
        if not state.lock.lets_land(self._is_to_end):
            raise PipelineBusy.of(state.folders.lake, "a command")

    def _release(self, releases: Releases) -> None:
        released = releases.release()
        if released is not None:
            self._report(released)

    def _wait(self, seconds: float) -> None:
        """Wait for some seconds, or until a stop is requested."""
        deadline = time.monotonic() + seconds
        while not self._is_to_end() and (left := deadline - time.monotonic()) > 0:
            self._is_stopping.wait(min(left, 0.1))

    def _report(self, happening: Happening) -> None:
        with self._ending:
            if not self._is_over:
                self._tell(happening)

    def _end(self, error: Exception | None, *, quietly: bool = False) -> None:
        """Report the end of the source, unless it has ended before."""
        with self._ending:
            if self._is_over:
                return
            if error is not None:
                self.error = sentence(error)
                self._tell(self._failure(error, None))
            elif not quietly:
                self._tell(Ended(self.source.name))
            self._is_over = True

    def _failure(self, error: Exception, retry_in: float | None) -> Failed:
        code: int | None = getattr(error, "err_code", None)
        return Failed(self.source.name, sentence(error), retry_in, kind_of(error), code)
