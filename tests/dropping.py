"""Drop objects that the program no longer references."""

from __future__ import annotations

import gc
import time
import weakref

from twinstream.core.deadline import Deadline

__all__ = ["let_go"]


def let_go(things: list[object]) -> None:
    """Drop objects that only this list references, and return once they no longer exist."""
    gone = [weakref.ref(thing) for thing in things]
    things.clear()
    deadline = Deadline.after(10)
    gc.collect()
    while any(each() is not None for each in gone):
        assert not deadline.expired(), "something else refers to it"
        # A thread that did a call for it may have it in its hands for a moment.
        time.sleep(0.001)
        gc.collect()
