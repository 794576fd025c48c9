"""How much of what is new goes into the next batch."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from twinstream.spark.source.options import SourceOptions

__all__ = ["admit", "is_too_little", "read_limit"]


def read_limit(options: SourceOptions) -> ReadLimit:
    """Return the limit that the options ask for.

    Spark knows single limits only. This one just tells Spark that there is a limit: all limits of
    the options apply whenever Spark does not ask for everything.
    """
    if options.max_messages_per_trigger is not None:
        return ReadMaxRows(options.max_messages_per_trigger)
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    if options.min_messages_per_trigger is not None:
        return ReadMinRows(options.min_messages_per_trigger)
    return ReadAllAvailable()


def is_too_little(options: SourceOptions, backlog: Mapping[str, int], waited: float) -> bool:
    """Tell whether a batch should wait for more; ``waited`` is seconds since the last one."""
    least = options.min_messages_per_trigger
    return (
        least is not None and sum(backlog.values()) < least and waited < options.max_trigger_delay
    )


def admit(
    options: SourceOptions, backlog: Mapping[str, int], sizes: Mapping[str, float]
) -> dict[str, int]:
    """Return how many sequences of each stream's backlog the next batch takes.

    ``sizes`` are the mean bytes of a message. Limits count sequences, of which there are at least
    as many as messages. One sequence is taken in any case, so that a limit never stops a read
    altogether. Streams share a limit in proportion to what waits in them.
    """
    admitted = dict(backlog)
    most = options.max_messages_per_trigger
    if most is not None:
        admitted = _share(admitted, dict.fromkeys(admitted, 1.0), most)
    most_bytes = options.max_bytes_per_trigger
    if most_bytes is not None:
        admitted = _share(admitted, sizes, most_bytes)
    return admitted


def _share(counts: Mapping[str, int], weights: Mapping[str, float], limit: float) -> dict[str, int]:
    total = sum(count * weights[name] for name, count in counts.items())
    if total <= limit:
        return dict(counts)
    shares = {name: int(count * limit / total) for name, count in counts.items()}
    if not any(shares.values()):
        fullest = max(counts, key=lambda name: counts[name])
        shares[fullest] = 1
    return shares
