"""Where a source continues: from which beginning, and from which sequence."""

from __future__ import annotations

from typing import Final

from twinstream.lake.entry import BatchEntry
from twinstream.lake.journal import Journal
from twinstream.lake.origin import Origin
from twinstream.spark.errors import CheckpointError, OptionError
from twinstream.spark.landing.write_batch import position_of
from twinstream.spark.pipeline.settings.config import SourceConfig
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.continuity import Continuity
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.offsets import Position
from twinstream.spark.source.stream_state import StreamState

__all__ = ["StartPoint", "first_origin", "landed_position"]


class StartPoint:
    """Decides where a source continues, from its journal and its stream."""

    def __init__(self, source: SourceConfig, journal: Journal, leader: Leader) -> None:
        self._source: Final = source
        self._journal: Final = journal
        self._leader: Final = leader

    def origin(self, stream: StreamState) -> Origin:
        """Return where the source began. A source that never ran begins at its `start`.

        Raises `CheckpointError` if the source landed another stream, and `OptionError` if `start`
        is beyond the end of the stream.
        """
        stored = self._journal.origin()
        is_new = self._journal.newest() < 0 and self._journal.unfinished() is None
        if stored is None:
            stored = self._journal.begin(first_origin(self._source, stream, self._leader))
        elif is_new and stored.created != stream.created:
            # The stream was re-created before its first batch was planned.
            later = stored.replaced_by(first_origin(self._source, stream, self._leader))
            stored = self._journal.begin(later)
        if stored.stream != self._source.stream:
            raise CheckpointError(
                f"source {self._source.name} landed stream {stored.stream} before, now it names"
                f" {self._source.stream}; give the source another name, or land into a new folder"
            )
        return stored

    def position(self, origin: Origin, stream: StreamState) -> int:
        """Return the first sequence that is not landed.

        If the stream was re-created or restored to an earlier state, its messages below this
        sequence are perhaps not landed and must not be released. In this case, raises
        `DataLossError`, or with `failOnDataLoss = false` returns the stream's first sequence.
        """
        position = landed_position(origin, self._journal.last())
        continuity = Continuity(self._source.source_options, self._leader.time_at)
        return continuity.stands_at(position, stream)


def first_origin(source: SourceConfig, state: StreamState, leader: Leader) -> Origin:
    """Return the beginning of a source that never ran; its `start` determines the sequence.

    A time after the last message is the end of the stream. Raises `OptionError` if a sequence is
    beyond the end of the stream.
    """
    match source.start:
        case "earliest":
            seq = state.first
        case "latest":
            seq = state.next
        case int(seq):
            if seq > state.next:
                raise OptionError(
                    "start",
                    f"is {seq}, beyond the end of stream {state.name} ({state.next - 1})",
                )
        case time:
            seq = Bound.at_time("start", time, "latest").resolve(state, leader.seq_at)
    return Origin(stream=state.name, created=state.created, seq=seq)


def landed_position(origin: Origin, last: BatchEntry | None) -> Position:
    """Return the position after the last landed batch, or where the source began."""
    return Position(origin.seq, origin.created) if last is None else position_of(last)
