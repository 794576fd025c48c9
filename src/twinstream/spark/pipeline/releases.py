"""Release the landed batches of a source, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.spark.errors import CheckpointError
from twinstream.spark.pipeline.pipeline_events import Released
from twinstream.spark.pipeline.release import Release, release_of
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.source.driver_client import Leader

__all__ = ["Releases"]


class Releases:
    """The releases of the batches that a source has landed.

    The first one repeats the release of the last batch, because the run before may have ended
    between the two.
    """

    def __init__(
        self,
        source: SourceConfig,
        state: SourceState,
        leader: Leader,
        is_to_end: Callable[[], bool],
    ) -> None:
        self._source: Final = source
        self._state: Final = state
        self._leader: Final = leader
        self._is_to_end: Final = is_to_end
        self._release: Final[Release] = release_of(source, state.sink, state.journal)
        self._released: int | None = None

    def prepare(self, position: int) -> None:
        """Prepare releases up to `position`, the first sequence that is not landed."""
        self._release.prepare(self._leader.jet(), position)

    def release(self) -> Released | None:
        """Release the messages up to the last landed batch.

        Return the event, or `None` if there was nothing to release.
        """
        if self._source.commit == "none":
            return None
        entry = self._state.journal.last()
        if entry is None or entry.batch == self._released:
            return None
        with self._state.lock.shared(self._is_to_end) as granted:
            if not granted:
                return None  # the next run releases the batch
            try:
                removed = self._release.release(self._leader.jet(), entry)
            except CheckpointError:
                # A command of another machine may have changed the tables meanwhile.
                if self._state.lock.user() is None:
                    raise
                return None
        self._released = entry.batch
        return Released(self._source.name, self._source.commit, entry.end, removed)
