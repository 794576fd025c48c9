"""Where the query of a source continues: with which identity, and from which sequence."""

from __future__ import annotations

from typing import Final

from twinstream.spark.pipeline.recover import accepted, check_subjects, recovered, refiltered
from twinstream.spark.pipeline.run_options import RunOptions
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.pipeline.state.identity import Identity
from twinstream.spark.pipeline.state.source_state import SourceState
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stream_state import StreamState

__all__ = ["StartPoint"]


class StartPoint:
    """Decides where a query continues, from the stored state of its source and its stream."""

    def __init__(
        self, source: SourceConfig, options: RunOptions, state: SourceState, leader: Leader
    ) -> None:
        self._source: Final = source
        self._options: Final = options
        self._state: Final = state
        self._leader: Final = leader

    def identity(self, stream: StreamState) -> Identity:
        """Return the identity of the source, after the repairs that the user has asked for.

        Raises `CheckpointError` and others if the query cannot continue.
        """
        source, state, options = self._source, self._state, self._options
        stored = Identity.load(state.folder)
        last = state.log.last()
        if stored is not None and last is None and stored.created != stream.created:
            stored = None  # the stream was re-created before the first batch was landed
        identity = stored or Identity.first(source, stream).save(state.folder)
        about = (state.folder, state.sink, stream, self._leader.time_at)
        if options.accept_stream:
            identity = accepted(source, identity, *about)
        if options.recover:
            identity = recovered(source, identity, *about)
        if options.accept_subjects:
            identity = refiltered(source, identity, *about, self._leader.seq_from)
        identity.check(source, state.checkpoint, landed=last is not None)
        check_subjects(source, identity, state.folder)
        return identity

    def position(self, identity: Identity, stream: StreamState) -> int:
        """Return the first sequence that is not landed.

        If the stream was re-created or restored to an earlier state, its messages below this
        sequence are perhaps not landed and must not be released. In this case, raises
        `DataLossError`, or with `failOnDataLoss = false` returns the stream's first sequence.
        """
        checkpoint = self._state.checkpoint
        committed = checkpoint.last_committed()
        position = Position(identity.origin, identity.created)
        if committed >= 0:
            position = checkpoint.bounds(committed, identity.origin).end
        continuity = Continuity(self._source.source_options, self._leader.time_at)
        return continuity.stands_at(position, stream)
