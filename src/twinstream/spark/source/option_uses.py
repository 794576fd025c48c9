"""Options that only one kind of read or write obeys: the other kind refuses them.

An end or a limit is set because it is needed; a read that ignores it gives more rows than wanted.
So is the identity of a write: if it is ignored, rows are stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from twinstream.spark.errors import OptionError

__all__ = ["refuse_ends", "refuse_limits", "refuse_lone_delay", "refuse_write_id"]

_LEAST: Final = frozenset({"minmessagespertrigger", "minoffsetspertrigger"})
_LIMITS: Final = _LEAST | {
    *("maxmessagespertrigger", "maxoffsetspertrigger", "maxbytespertrigger", "maxtriggerdelay")
}


def refuse_ends(names: Iterable[str]) -> None:
    """Refuse what says where a batch ends. Raises `OptionError`."""
    for name in names:
        if name.lower().startswith("ending"):
            raise OptionError(
                name, "is for a batch: this read takes all there is, and what comes after it"
            )


def refuse_limits(names: Iterable[str]) -> None:
    """Refuse what says how much a micro-batch takes. Raises `OptionError`."""
    for name in names:
        if name.lower() in _LIMITS:
            raise OptionError(
                name,
                "is for a streaming query; a batch is bounded by startingOffsets and"
                " endingOffsets, or by their times",
            )


def refuse_lone_delay(names: Iterable[str]) -> None:
    """Refuse to say how long a micro-batch waits for something it does not wait for.

    Raises `OptionError`.
    """
    given = {name.lower(): name for name in names}
    if "maxtriggerdelay" in given and given.keys().isdisjoint(_LEAST):
        raise OptionError(
            given["maxtriggerdelay"],
            "needs minMessagesPerTrigger beside it: without that no batch waits for more messages;"
            " how often one begins is up to the trigger of the query",
        )


def refuse_write_id(names: Iterable[str]) -> None:
    """Refuse to name the write of a streaming query. Raises `OptionError`."""
    # Spark hands the options of a stream on in lower case.
    if any(name.lower() == "writeid" for name in names):
        raise OptionError(
            "writeId",
            "is for a batch write: a streaming query is known by its checkpoint, and with another"
            " one stores its rows again; leave it out, and give rows an idColumn or"
            " idempotence=insert if they must be known under any checkpoint",
        )
