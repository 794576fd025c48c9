"""Divide the batches of a replay of dead letters among plans that can be stored and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import asdict

from twinstream.core.wire.response import write_json
from twinstream.lake.entry import BatchEntry
from twinstream.models.files.bounded_read import LARGEST

__all__ = ["plan_portions"]

# The maximum number of batches of one plan. A Parquet table of dead letters is built again for each
# plan.
_BATCHES: Final = 10_000

# The maximum size of a plan in bytes. The sizes below are estimates, so this is a part of what a
# journal can have.
_BYTES: Final = LARGEST // 4

# The approximate size of a file in a plan, and of its table in the entry of the batch.
_FILE: Final = 300


def plan_portions(due: Iterable[BatchEntry], tables: int) -> Iterator[list[BatchEntry]]:
    """Yield the batches of each plan, in their order.

    A plan has the entry of each batch, which has the subjects of the source, and a file for each of
    the `tables` tables.
    """
    portion: list[BatchEntry] = []
    size = 0
    for entry in due:
        own = len(write_json(asdict(entry))) + tables * _FILE
        if portion and (size + own > _BYTES or len(portion) == _BATCHES):
            yield portion
            portion, size = [], 0
        portion.append(entry)
        size += own
    if portion:
        yield portion
