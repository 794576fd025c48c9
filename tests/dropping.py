"""Drop objects that the program no longer references, and find them soon."""

from __future__ import annotations

import gc
import time
import weakref

from twinstream.core.deadline import Deadline

__all__ = ["begin_collecting", "let_go"]


def begin_collecting() -> None:
    """Let later garbage collections, which are many, search only what is made from now on."""
    gc.collect()
    gc.freeze()


def let_go(things: list[object]) -> None:
    """Drop objects that only this list references, and return once they no longer exist."""
    gone = [weakref.ref(thing) for thing in things]
    things.clear()
    deadline = Deadline.after(60)
    gc.collect()
    while any(each() is not None for each in gone):
        assert not deadline.expired(), "something else refers to it"
        # A thread that did a call for it may have it in its hands for a moment.
        time.sleep(0.001)
        gc.collect()
