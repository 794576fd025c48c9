"""Run something at a named point of the SDK, as another thread would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twinstream.core.base.hooks import HOOKS, Point

__all__ = ["hooked", "once", "starts"]


@contextmanager
def hooked(point: Point, work: Callable[[Any], object]) -> Iterator[None]:
    """Run work at a point, with the object at hand there, until the block ends."""
    assert point not in HOOKS
    HOOKS[point] = work
    try:
        yield
    finally:
        del HOOKS[point]


@contextmanager
def starts() -> Iterator[dict[str, Any]]:
    """Collect the background tasks that start in the block, by name; of several the last one."""
    tasks: dict[str, Any] = {}
    with hooked("task: started", lambda started: tasks.update([started])):
        yield tasks


def once(work: Callable[[], object]) -> Callable[[Any], None]:
    """Return a hook that runs work the first time only."""
    todo = [work]

    def run(_: Any) -> None:
        if todo:
            todo.pop()()

    return run
