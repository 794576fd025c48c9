"""Refuse options that apply only to the other kind of query, batch or streaming.

Ignoring an end or a limit would return more rows than the caller wants. Ignoring the ID of a write
would store rows twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from twinstream.spark.errors import OptionError

__all__ = [
    "LEAST",
    "refuse_ends",
    "refuse_history",
    "refuse_limits",
    "refuse_lone_delay",
    "refuse_write_id",
]

LEAST: Final = frozenset({"minmessagespertrigger", "minoffsetspertrigger"})
_LIMITS: Final = LEAST | {
    *("maxmessagespertrigger", "maxoffsetspertrigger", "maxbytespertrigger", "maxtriggerdelay")
}


def refuse_ends(names: Iterable[str]) -> None:
    """Refuse the end of a batch in a streaming query. Raises `OptionError`."""
    for name in names:
        if name.lower().startswith("ending"):
            raise OptionError(
                name, "is for a batch: a streaming query reads all messages, also those to come"
            )


def refuse_history(names: Iterable[str]) -> None:
    """Refuse `history` in a streaming query. Raises `OptionError`."""
    for name in names:
        if name.lower() == "history":
            raise OptionError(
                name,
                "is for a batch: a streaming query reads each revision that is stored, from"
                " startingOffsets on",
            )


def refuse_limits(names: Iterable[str]) -> None:
    """Refuse the limits of a micro-batch in a batch query. Raises `OptionError`."""
    for name in names:
        if name.lower() in _LIMITS:
            raise OptionError(
                name,
                "is for a streaming query; a batch is bounded by startingOffsets and"
                " endingOffsets, or by their times",
            )


def refuse_lone_delay(names: Iterable[str]) -> None:
    """Refuse `maxTriggerDelay` without a minimum to wait for. Raises `OptionError`."""
    given = {name.lower(): name for name in names}
    if "maxtriggerdelay" in given and given.keys().isdisjoint(LEAST):
        raise OptionError(
            given["maxtriggerdelay"],
            "needs minMessagesPerTrigger: without it no batch waits for more messages; the trigger"
            " of the query sets how often a batch begins",
        )


def refuse_write_id(names: Iterable[str]) -> None:
    """Refuse `writeId` in a streaming query. Raises `OptionError`."""
    # Spark passes the options of a streaming query in lower case.
    if any(name.lower() == "writeid" for name in names):
        raise OptionError(
            "writeId",
            "is for a batch write: a streaming query is identified by its checkpoint, and with a"
            " new checkpoint it stores its rows again; remove it, and use idColumn or"
            " idempotence=insert if rows must be recognized under any checkpoint",
        )
