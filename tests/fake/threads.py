"""Work in a second thread, and waits for events that must not occur."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests._sync.flow import eventually

__all__ = ["A_WHILE", "beside", "in_time"]

# What should never happen is waited for so long (seconds): a test that is over too soon only
# proves less.
A_WHILE = 0.3


def in_time(condition: Callable[[], Any], patience: float = A_WHILE) -> bool:
    """Return whether a condition becomes true within a while."""
    try:
        return bool(eventually(condition, patience=patience))
    except AssertionError:
        return False


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Run work in a thread that ends with the block; yield a list of its result or error."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(work())
        except Exception as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield came
    thread.join(30)
    assert not thread.is_alive()
