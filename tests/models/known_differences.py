"""Where rules and server differ on purpose, by name and with the reason.

The differential tests leave out what a function here recognises, and count it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pull_fuzz import CONSUMERS

KNOWN: dict[str, tuple[str, Callable[[int, int, Any], bool]]] = {
    "empty list of transforms": (
        "A server keeps an empty list of a mirror's transforms apart from none and refuses an "
        "update from one to the other, but its answers show neither.",
        lambda ours, theirs, configs: theirs == 10055 and _mentions(configs, "subject_transforms"),
    ),
    "vanished": (
        "A consumer whose inactive_threshold is a few nanoseconds is gone before the update.",
        lambda ours, theirs, configs: theirs == 10149 and _mentions(configs, "inactive_threshold"),
    ),
    "somebody listens": (
        "deliver_subject cannot move while somebody listens on the old one, here a stream.",
        lambda ours, theirs, configs: theirs == 10013 and not ours,
    ),
    "a hair above max_expires": (
        "The server measures what is left of expires when it comes to the check.",
        lambda ours, theirs, configs: (
            ours == 409 and not theirs and _barely_above(configs, CONSUMERS["bound"]["max_expires"])
        ),
    ),
    "origin allows direct reads": (
        "A pedantic server compares mirror_direct with the origin's allow_direct.",
        lambda ours, theirs, configs: theirs == 10157 and _mentions(configs, "mirror_direct"),
    ),
}


def known(ours: int, theirs: int, configs: Any) -> str | None:
    """Return the name of the difference, None for one that nobody explained."""
    for name, (_, applies) in KNOWN.items():
        if applies(ours, theirs, configs):
            return name
    return None


def _barely_above(request: Any, bound: int) -> bool:
    return any(f'"expires": {bound + more}' in request[1] for more in range(1, 10))


def _mentions(value: Any, word: str) -> bool:
    if isinstance(value, dict):
        return word in value or any(_mentions(item, word) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_mentions(item, word) for item in value)
