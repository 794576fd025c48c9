"""Named points between two statements, where a test runs what another thread may do just then.

In programs `HOOKS` is empty, and a point costs the check of an empty dict. A test replaces no
function and no attribute: it puts a function under the name of a point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

__all__ = ["HOOKS", "Point", "reached"]

Point = Literal[
    "channels: before take",
    "command: before event",
    "command: before step",
    "command: health failed",
    "command: health shown",
    "command: link looked at",
    "command: message printed",
    "link: another thread is behind",
    "link: before connect",
    "link: before poll",
    "link: before spin",
    "link: before stand-in",
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
    "task: started",
]
"""The owner of the point, then what happens next or has just happened."""

HOOKS: Final[dict[Point, Callable[[Any], object]]] = {}
"""What runs at a point, with the object that is at hand there. Only tests put something in."""


def reached(point: Point, item: object) -> None:
    """Run the hook of a point, if there is one. Callers check that `HOOKS` is not empty."""
    hook = HOOKS.get(point)
    if hook is not None:
        hook(item)
