"""Delays: how long does it take to spread, and how long after a deletion.

In a cluster, the servers learn at different times what one of them has confirmed. Until then, a
request is repeated. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from twinstream.core.deadline import Backoff, Deadline

__all__ = [
    "DELETION",
    "SPREADING",
    "SPREADING_LONGEST",
    "SPREADING_NAMES",
    "SPREADING_SURELY",
    "spreading_pauses",
]

SPREADING: Final = 0.3
"""How long a request is repeated while there are no responders, if the responder may not exist."""

SPREADING_SURELY: Final = 0.5
"""The same, if a server has reported that the responder exists."""

SPREADING_LONGEST: Final = 2.0
"""The same, if a failure would cost more than the wait: for the chunks of a restore."""

# The pauses between these repeats.
_SPREADING_PAUSES: Final = Backoff(0.01, 0.1)

SPREADING_NAMES: Final = 0.25
"""How long after its creation a stream may be missing in the list of names."""

DELETION: Final = 0.3
"""How long after the report of its deletion a consumer may still be there in part."""


def spreading_pauses(seconds: float) -> Iterator[float]:
    """Return the pauses before the repeats of a request; there is none if `seconds` is 0.

    The time begins with this call. The last repeat is sent after it, even if the program was held
    up and read the first refusal too late.
    """
    return _pauses_until(Deadline.after(seconds)) if seconds > 0 else iter(())


def _pauses_until(end: Deadline) -> Iterator[float]:
    for pause in _SPREADING_PAUSES:
        remaining = end.remaining()
        if remaining <= pause:
            yield remaining
            return
        yield pause
