"""Split the sequences between two bounds into ranges, one for each task."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Final

from pyspark.sql.datasource import InputPartition

from js_spark.errors import OptionError
from js_spark.options import SourceOptions
from js_spark.stream_state import StreamState

__all__ = ["SequenceRange", "partition_count", "reads_direct", "split"]

#: Below this many sequences a further task costs more than it saves: a task takes some tens of
#: milliseconds to start, in which one reader reads about as many messages.
SMALL: Final = 20_000


class SequenceRange(InputPartition):
    """Sequences ``start`` up to, not including, ``end`` of one stream, read by one task.

    ``direct`` says whether direct get reads it, an ephemeral consumer otherwise.
    """

    def __init__(self, stream: str, start: int, end: int, *, direct: bool) -> None:
        super().__init__((stream, start, end))
        self.stream = stream
        self.start = start
        self.end = end
        self.direct = direct

    def __repr__(self) -> str:
        return f"SequenceRange({self.stream} [{self.start}, {self.end}))"


def partition_count(options: SourceOptions, size: int) -> int:
    """Return into how many ranges ``size`` sequences of one stream are split."""
    wanted = options.min_partitions
    if wanted is None:
        wanted = min(os.cpu_count() or 1, -(-size // SMALL))
    if options.max_messages_per_partition is not None:
        wanted = max(wanted, -(-size // options.max_messages_per_partition))
    return max(1, min(wanted, size))


def split(stream: str, start: int, end: int, parts: int, *, direct: bool) -> list[SequenceRange]:
    """Return ``parts`` ranges of equal size (to one) that cover ``[start, end)`` exactly."""
    size = end - start
    edges = [start + size * at // parts for at in range(parts + 1)]
    return [
        SequenceRange(stream, low, high, direct=direct)
        for low, high in pairwise(edges)
        if high > low
    ]


def reads_direct(options: SourceOptions, state: StreamState) -> bool:
    """Return whether direct get reads the stream. Raises `OptionError` where it cannot."""
    if options.read_mode == "auto":
        return state.allow_direct
    if options.read_mode == "direct" and not state.allow_direct:
        raise OptionError(
            "readMode",
            f"'direct' needs allow_direct on stream {state.name}; set it, or use 'auto'",
        )
    return options.read_mode == "direct"
