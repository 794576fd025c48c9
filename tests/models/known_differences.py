"""Intended differences between the rules and the server, by name and with the reason.

The differential tests count the configs that a function here recognises, and do not compare them.
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
    "the zone of a mirror's start": (
        "A server tells +00:00 from Z where a mirror starts, but it answers Z for both.",
        lambda ours, theirs, configs: theirs == 10055 and "00:00-00:00" in str(configs),
    ),
    "vanished": (
        "A consumer whose inactive_threshold is a few nanoseconds is gone before the update.",
        lambda ours, theirs, configs: theirs == 10149 and _mentions(configs, "inactive_threshold"),
    ),
    "another name on the way": (
        "An update to direct and sourcing goes to a name with random letters, which nobody has.",
        lambda ours, theirs, configs: theirs == 10149 and _mentions(configs, "sourcing"),
    ),
    "somebody listens": (
        "deliver_subject cannot move while somebody listens on the old one, here a stream.",
        lambda ours, theirs, configs: theirs == 10013 and not ours,
    ),
    "a hair above max_expires": (
        "The server measures what is left of expires when it comes to the check.",
        lambda ours, theirs, configs: (
            ours == 409 != theirs and _barely_above(configs, CONSUMERS["bound"]["max_expires"])
        ),
    ),
    "messages of the origin": (
        "The server compares max_msg_size with that of an origin that it can see.",
        lambda ours, theirs, configs: theirs in (10030, 10046) and _mentions(configs, "name"),
    ),
    "origin allows direct reads": (
        "A pedantic server compares mirror_direct with the origin's allow_direct.",
        lambda ours, theirs, configs: theirs == 10157 and _mentions(configs, "mirror_direct"),
    ),
}


def known(ours: int, theirs: int, configs: Any) -> str | None:
    """Return the name of the difference, or None if it is unexplained."""
    for name, (_, applies) in KNOWN.items():
        if applies(ours, theirs, configs):
            return name
    return None


KNOWN_STORED: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "a name of the server's own": (
        "A named consumer with direct and sourcing gets random letters behind its name on a stream "
        "that only limits empty.",
        lambda config, stored: (
            bool(config.get("direct") and config.get("sourcing"))
            and str(stored.get("name", "")).startswith(f"{config.get('name')}-")
        ),
    ),
    "mirror_direct of the origin": (
        "Where the server can see a mirror's origin, mirror_direct is the origin's allow_direct.",
        lambda config, stored: bool(config.get("mirror") and config.get("mirror_direct")),
    ),
}


def known_stored(config: Any, stored: Any) -> str | None:
    """Return the name of a difference in the stored config, or None if it is unexplained."""
    for name, (_, applies) in KNOWN_STORED.items():
        if applies(config, stored):
            return name
    return None


def _barely_above(request: Any, bound: int) -> bool:
    return any(f'"expires": {bound + more}' in request[1] for more in range(1, 10))


def _mentions(value: Any, word: str) -> bool:
    if isinstance(value, dict):
        return word in value or any(_mentions(item, word) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_mentions(item, word) for item in value)
