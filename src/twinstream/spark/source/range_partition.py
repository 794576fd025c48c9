"""Ranges of sequences as the partitions of a read by Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from twinstream.spark.source.plan import SequenceRange

__all__ = ["RangePartition", "partitions_of", "range_partition"]


class RangePartition(InputPartition):
    """The range that a task reads. `leads` is true for the first range of a read."""

    value: SequenceRange

    def __init__(self, value: SequenceRange, *, leads: bool) -> None:
        super().__init__(value)
        self.leads = leads


def partitions_of(ranges: Sequence[SequenceRange]) -> list[InputPartition]:
    """Return a partition for each range, or a partition with an empty range if there is none.

    Spark would replace an empty list by one partition that is `None`.
    """
    found = ranges or [SequenceRange("", 1, 1, "direct")]
    return [RangePartition(each, leads=at == 0) for at, each in enumerate(found)]


def range_partition(partition: InputPartition) -> RangePartition:
    """Return a partition of this source. Raises `TypeError` for any other partition."""
    if not isinstance(partition, RangePartition):
        raise TypeError(f"not a partition of this source: {partition!r}")
    return partition
