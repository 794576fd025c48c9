"""The end of objects: by a `with` block, except in a forked child, and by their connection."""

from __future__ import annotations

from typing import Final
from weakref import WeakMethod

from js_async.runtime.concurrency import Forks, Wait, Work

__all__ = ["CLOSING", "Closable", "Drainables"]

CLOSING: Final = ("abandon", "close", "drain", "release", "stop")
"""Names of methods that end the work of an object."""


class Closable:
    """The base class of objects that only the process that created them may close.

    A child process that was forked within a `with` block also leaves the block, for example by
    `sys.exit`. It must not close the parent's object. An error of `close` would also hide the
    child's exit code. So the methods in `CLOSING` begin with a check of `_is_parents`, and do
    nothing in a forked child.
    """

    def __init__(self) -> None:
        self._made_in: Final = Forks.count

    @property
    def _is_parents(self) -> bool:
        """Whether this process was forked after the object was created."""
        return self._made_in != Forks.count


class Drainables:
    """What `Connection.drain` ends: buffers of messages, and the work that takes from a buffer."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[WeakMethod[Work], WeakMethod[Wait]]] = {}

    def add(self, source: object, end: Work, ended: Wait) -> None:
        """Add a buffer or background work, or replace how a source ends.

        `end` lets the source receive no further messages. `ended` waits until those that have
        arrived were taken, or handled by the work. Both are methods of objects that stay alive
        without this table.
        """
        key = id(source)

        def forget(gone: WeakMethod[Work]) -> None:
            if key in self._known and self._known[key][0] is gone:
                del self._known[key]

        self._known[key] = WeakMethod(end, forget), WeakMethod(ended)

    def in_use(self) -> list[tuple[Work, Wait]]:
        """Return `end` and `ended` of everything that is still in use."""
        known = [(end(), ended()) for end, ended in list(self._known.values())]
        return [(end, ended) for end, ended in known if end is not None and ended is not None]
