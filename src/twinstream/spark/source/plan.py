"""Split the sequences between two bounds into ranges, one range per task."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from twinstream.spark.errors import OptionError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_state import StreamState

__all__ = ["SequenceRange", "Way", "partition_count", "read_way", "split"]

Way: TypeAlias = Literal["direct", "consumer", "either"]
"""How a range is read: by direct get, or by an ephemeral consumer. With `either`, the size of the
range determines the way."""

SMALL: Final = 20_000
"""The fewest sequences for which another task saves time.

Starting a task takes some tens of milliseconds, and a running task reads about 20,000 messages in
this time. One task per started 20,000 means that no task of several has 10,000 sequences or fewer.
"""

MOST: Final = 1_000_000
"""The most sequences of one task unless `minPartitions` is set.

A task reads them in about five seconds.
"""

SHARE: Final = 125_000
"""The most sequences of one task if the session may have more slots than are known.

A million sequences are then 8 tasks. Each of them reads for about half a second, much longer than
it takes to start.
"""

LARGE: Final = 100_000
"""The fewest sequences of a range for which `either` means a consumer.

A consumer costs the server about half the CPU time of direct gets and two thirds of the bytes. But
it must be created and deleted, and for small ranges these requests cost more than they save.
"""


class SequenceRange:
    """The sequences from `start` up to, not including, `end` of one stream, for one task.

    `way` is how the task reads the range. `created` is the stream's creation time when the
    range was planned. The task compares it with the current creation time, because the stream may
    have been re-created since; if `created` is empty, the task does not compare. No message of
    the range was stored before `since`; `None` means that no such time is known.
    """

    def __init__(
        self,
        stream: str,
        start: int,
        end: int,
        way: Way,
        created: str = "",
        since: str | None = None,
    ) -> None:
        self.stream = stream
        self.start = start
        self.end = end
        self.way: Way = way
        self.created = created
        self.since = since

    @property
    def by_consumer(self) -> bool:
        """Whether the task tries to read the range with a consumer before it uses direct get."""
        return self.way == "consumer" or (self.way == "either" and self.end - self.start >= LARGE)

    def __repr__(self) -> str:
        return f"SequenceRange({self.stream} [{self.start}, {self.end}))"


def partition_count(options: SourceOptions, size: int) -> int:
    """Return the number of ranges for `size` sequences of one stream.

    Unless an option sets it, this is the number of `slots`, but at most one range per started
    `SMALL` sequences, and at least one per started `MOST` sequences. If the slots are not known,
    they are the cores of this machine, or more: at least one range per started `SHARE` sequences.
    """
    wanted = options.min_partitions
    if wanted is None:
        wanted = min(options.slots or os.cpu_count() or 1, -(-size // SMALL))
        most = SHARE if options.slots is None or options.more_slots else MOST
        wanted = max(wanted, -(-size // most))
    if options.max_messages_per_partition is not None:
        wanted = max(wanted, -(-size // options.max_messages_per_partition))
    return max(1, min(wanted, size))


def split(
    stream: str,
    start: int,
    end: int,
    parts: int,
    way: Way,
    created: str = "",
    since: str | None = None,
) -> list[SequenceRange]:
    """Return `parts` ranges that cover `[start, end)`; their sizes differ by at most one.

    Empty ranges are omitted.
    """
    size = end - start
    edges = [start + size * at // parts for at in range(parts + 1)]
    return [
        SequenceRange(stream, low, high, way, created, since)
        for low, high in pairwise(edges)
        if high > low
    ]


def read_way(options: SourceOptions, state: StreamState) -> Way:
    """Return how the ranges of a stream are read.

    Raises `OptionError` if the configuration of the stream allows no way that `readMode` permits.
    """
    if state.is_queue and (options.read_mode == "consumer" or not state.allow_direct):
        raise OptionError(
            "readMode",
            f"stream {state.name} is a work queue, which accepts no consumer without"
            " acknowledgements; set allow_direct on it, and use 'auto'",
        )
    if options.read_mode == "auto":
        if not state.allow_direct:
            return "consumer"
        # On a work queue or an interest stream, a consumer would change which messages the stream
        # keeps.
        return "either" if state.by_limits else "direct"
    if options.read_mode == "direct" and not state.allow_direct:
        raise OptionError(
            "readMode",
            f"'direct' needs allow_direct on stream {state.name}; set it, or use 'auto'",
        )
    return options.read_mode
