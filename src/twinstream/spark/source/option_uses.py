"""Refuse options of streaming queries in batch queries, and vice versa.

If the source ignored an end or a limit, the query would return more rows than the user wants. If
the sink ignored the ID of a write, rows would be stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from twinstream.spark.errors import OptionError

__all__ = [
    "LEAST",
    "refuse_batch_only",
    "refuse_ends",
    "refuse_limits",
    "refuse_lone_delay",
    "refuse_write_id",
]

LEAST: Final = frozenset({"minmessagespertrigger", "minoffsetspertrigger"})
_LIMITS: Final = LEAST | {
    *("maxmessagespertrigger", "maxoffsetspertrigger", "maxbytespertrigger", "maxtriggerdelay")
}
_BATCH_ONLY: Final = {
    "history": "a streaming query reads each revision that is stored, from startingOffsets on",
    "refresh": "a streaming query always reads what is new; give it to the spark.read that the"
    " query joins",
}


def refuse_ends(names: Iterable[str]) -> None:
    """Raise `OptionError` if a streaming query has an option that sets the end of a read."""
    for name in names:
        if name.lower().startswith("ending"):
            raise OptionError(
                name, "is for a batch: a streaming query reads all messages, also those to come"
            )


def refuse_batch_only(names: Iterable[str]) -> None:
    """Raise `OptionError` if a streaming query has the option `history` or `refresh`."""
    for name in names:
        if reason := _BATCH_ONLY.get(name.lower()):
            raise OptionError(name, f"is for a batch: {reason}")


def refuse_limits(names: Iterable[str]) -> None:
    """Raise `OptionError` if a batch query has an option that limits or delays micro-batches."""
    for name in names:
        if name.lower() in _LIMITS:
            raise OptionError(
                name,
                "is for a streaming query; a batch is bounded by startingOffsets and"
                " endingOffsets, or by their times",
            )


def refuse_lone_delay(names: Iterable[str]) -> None:
    """Raise `OptionError` for `maxTriggerDelay` without `minMessagesPerTrigger` or its alias."""
    given = {name.lower(): name for name in names}
    if "maxtriggerdelay" in given and given.keys().isdisjoint(LEAST):
        raise OptionError(
            given["maxtriggerdelay"],
            "needs minMessagesPerTrigger: without it no batch waits for more messages; the trigger"
            " of the query sets how often a batch begins",
        )


def refuse_write_id(names: Iterable[str]) -> None:
    """Raise `OptionError` if a streaming query has the option `writeId`."""
    # Spark passes the names of a streaming query's options in lower case.
    if any(name.lower() == "writeid" for name in names):
        raise OptionError(
            "writeId",
            "is for a batch write: a streaming query is identified by its checkpoint, and with a"
            " new checkpoint it stores its rows again; remove it, and use idColumn or"
            " idempotence=insert if rows must be recognized under any checkpoint",
        )
