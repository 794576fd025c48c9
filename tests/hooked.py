"""Run a function at a named point of the SDK, as another thread could."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twinstream.core.hooks import HOOKS, Point

__all__ = ["hooked", "once", "starts"]


@contextmanager
def hooked(point: Point, work: Callable[[Any], object]) -> Iterator[None]:
    """Run work at a point until the block ends; its argument is the object at the point."""
    assert point not in HOOKS
    HOOKS[point] = work
    try:
        yield
    finally:
        del HOOKS[point]


@contextmanager
def starts() -> Iterator[dict[str, Any]]:
    """Collect the background tasks or threads that start in the block: the last of each name."""
    tasks: dict[str, Any] = {}
    with hooked("task: started", lambda started: tasks.update([started])):
        yield tasks


def once(work: Callable[[], object]) -> Callable[[Any], None]:
    """Return a hook that runs work only the first time."""
    todo = [work]

    def run(_: Any) -> None:
        if todo:
            todo.pop()()

    return run
