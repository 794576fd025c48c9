"""Named points in the code, at which a test can run what another thread could do at that moment.

Outside of tests `HOOKS` is empty, so a point only takes the check of an empty dict. A test adds a
function for a point instead of patching functions or attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

__all__ = ["HOOKS", "Point", "reached"]

Point = Literal[
    "backup: before rename",
    "backup: renamed",
    "channels: before take",
    "command: before event",
    "command: before step",
    "command: connection checked",
    "command: health failed",
    "command: health shown",
    "command: message printed",
    "events: before look",
    "events: event taken",
    "group: change noted",
    "journal: before landed",
    "keeper: before clear",
    "land: before tasks",
    "lane: found empty",
    "letters: before removal",
    "letters: before tables",
    "link: before connect",
    "link: before keeper reads",
    "link: before poll",
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
    "pull: before send",
    "push: before clear",
    "relay: before clear",
    "relay: stopping",
    "replay: before journal",
    "replay: before table",
    "request: before wait",
    "rewrite: before rows",
    "rewrite: between rows",
    "session: before fail",
    "session: before notice",
    "session: before ready wait",
    "session: mailbox opened",
    "source: found empty",
    "staging: before put",
    "task: started",
]
"""The name of a point: the component, then what happens next or has just happened."""

HOOKS: Final[dict[Point, Callable[[Any], object]]] = {}
"""The function for each point. `reached` calls it with `item`. Only tests add functions."""


def reached(point: Point, item: object) -> None:
    """Call the function of a point, if a test has added one. Callers check `HOOKS` first."""
    hook = HOOKS.get(point)
    if hook is not None:
        hook(item)
