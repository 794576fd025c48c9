"""Options that only one kind of read obeys: the other kind refuses them.

An end or a limit is set because it is needed; a read that ignores it gives more rows than wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from js_spark.errors import OptionError

__all__ = ["refuse_ends", "refuse_limits"]

_LIMITS: Final = frozenset(
    {"maxmessagespertrigger", "maxoffsetspertrigger", "maxbytespertrigger"}
    | {"minmessagespertrigger", "minoffsetspertrigger", "maxtriggerdelay"}
)


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
