"""Named points between two statements, where a test can run what another thread could do then.

`HOOKS` is empty outside of tests, so a point costs one check of an empty dict. A test adds a
function under a point's name in place of patching functions or attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

__all__ = ["HOOKS", "Point", "reached"]

Point = Literal[
    "backup: before rename",
    "batch log: before landed",
    "channels: before take",
    "command: before event",
    "command: before step",
    "command: connection checked",
    "command: health failed",
    "command: health shown",
    "command: message printed",
    "events: event taken",
    "journal: before commit",
    "link: before connect",
    "link: before keeper reads",
    "link: before poll",
    "link: before spin",
    "link: data unprocessed",
    "link: received",
    "messages: before clear",
    "messages: before hand-over",
    "messages: before wait",
    "page: before look",
    "parser: before parse",
    "publish: before flag",
    "publish: before outcome",
    "publish: before recovery",
    "publish: before send",
    "push: before clear",
    "relay: before clear",
    "relay: stopping",
    "request: before wait",
    "session: before fail",
    "session: before ready wait",
    "session: mailbox opened",
    "staging: before put",
    "task: started",
]
"""The owner of the point, then what happens next or has just happened."""

HOOKS: Final[dict[Point, Callable[[Any], object]]] = {}
"""The function to call at each point, with the object passed to `reached`. Only tests add some."""


def reached(point: Point, item: object) -> None:
    """Run the hook of a point, if there is one. Callers check that `HOOKS` is not empty."""
    hook = HOOKS.get(point)
    if hook is not None:
        hook(item)
