"""Limits of a micro-batch: compute how much of the backlog the next batch reads."""

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
    """Return one of the limits that the options set, as Spark's type.

    Spark accepts one limit only. The returned limit only shows Spark that a limit exists: the
    source applies all limits of the options, unless Spark requests all available data.
    """
    if options.max_messages_per_trigger is not None:
        return ReadMaxRows(options.max_messages_per_trigger)
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    if options.min_messages_per_trigger is not None:
        return ReadMinRows(options.min_messages_per_trigger)
    return ReadAllAvailable()


def is_too_little(options: SourceOptions, backlog: Mapping[str, int], waited: float) -> bool:
    """Return whether a batch should wait for more messages.

    ``waited`` is the number of seconds since the last batch was planned.
    """
    least = options.min_messages_per_trigger
    return (
        least is not None and sum(backlog.values()) < least and waited < options.max_trigger_delay
    )


def admit(
    options: SourceOptions, backlog: Mapping[str, int], sizes: Mapping[str, float]
) -> dict[str, int]:
    """Return how many sequences of each stream's backlog the next batch reads.

    ``sizes`` has the mean size of a message in bytes. Limits count sequences, which are at least as
    many as messages. At least one sequence of a backlog is read, so that a limit never stops a
    read. Streams share a limit in proportion to their backlogs.
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
