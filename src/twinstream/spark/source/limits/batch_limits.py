"""Limits of a micro-batch: compute how much of the backlog the next batch reads."""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.spark.source.options import SourceOptions

__all__ = ["admit", "is_too_little"]


def is_too_little(options: SourceOptions, backlog: Mapping[str, int], waited: float) -> bool:
    """Return whether the next batch should wait for more messages.

    `backlog` has the number of unread messages of each stream. `waited` is the number of seconds
    since the last batch was planned.
    """
    least = options.min_messages_per_trigger
    return (
        least is not None and sum(backlog.values()) < least and waited < options.max_trigger_delay
    )


def admit(
    options: SourceOptions, backlog: Mapping[str, int], sizes: Mapping[str, float]
) -> dict[str, int]:
    """Return how many messages of each stream's backlog the next batch reads.

    `backlog` has the number of unread messages of each stream, and `sizes` the mean size of a
    stream's messages in bytes. Streams share a limit in proportion to their backlogs. If all shares
    are below one message, the stream with the largest backlog gets one, so that a small limit never
    stops the query.
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
