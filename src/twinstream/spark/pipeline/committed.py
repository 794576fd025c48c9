"""Release the batches of a source that Spark has committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twinstream.spark.pipeline.pipeline_events import Released
from twinstream.spark.pipeline.release import Release, release_of
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.source.driver_client import Leader

__all__ = ["CommittedBatches"]


class CommittedBatches:
    """The committed batches of a source, each of which is released once."""

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
        self._release: Final[Release] = release_of(source, state.sink, state.log)
        self._identity: Identity | None = None
        self._released: int | None = None

    def prepare(self, position: int) -> None:
        """Prepare releases up to `position`, the first sequence that is not landed."""
        self._release.prepare(self._leader.jet(), position)

    def begin(self, identity: Identity) -> None:
        """Let `release` release the batches of a query."""
        self._identity = identity

    def release(self) -> Released | None:
        """Release the messages up to the last batch that Spark has committed.

        Return the event, or `None` if there was nothing to release.
        """
        committed = self._state.checkpoint.last_committed()
        if self._source.commit == "none" or committed < 0 or self._identity is None:
            return None
        number = self._identity.base + committed
        if self._released == number:
            return None
        entry = self._state.log.known(number)
        if entry is None:
            return None
        with self._state.lock.shared(self._is_to_end) as granted:
            if not granted:
                return None  # the next run releases the batch
            removed = self._release.release(self._leader.jet(), entry)
        self._released = number
        return Released(self._source.name, self._source.commit, entry.end, removed)
