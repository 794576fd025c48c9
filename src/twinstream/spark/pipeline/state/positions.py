"""The position in a stream behind a batch."""

from __future__ import annotations

from twinstream.lake.entry import BatchEntry
from twinstream.lake.plan import Plan
from twinstream.spark.source.offsets import Position

__all__ = ["position_of"]


def position_of(batch: BatchEntry | Plan) -> Position:
    """Return the position in the stream after a landed or planned batch."""
    return Position(batch.end, batch.created, batch.filter, mark=batch.mark)
