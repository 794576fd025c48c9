"""Observers of all connections of this process that are opened from now on, in both twins.

Connections look for this module in `sys.modules`: a program that does not import it pays nothing.
The module imports nothing itself, because instrumentation imports it in every Python process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from twinstream.core.observe.observer import Observer
    from twinstream.core.observe.observers import Observers

__all__ = ["add", "all_observers", "process_observers", "remove"]

_MAKERS: Final[list[Callable[[], Observer]]] = []


def add(make: Callable[[], Observer]) -> None:
    """Let the observer that `make` returns see all connections that are opened from now on."""
    if make not in _MAKERS:
        _MAKERS.append(make)


def remove(make: Callable[[], Observer]) -> None:
    """Let connections that are opened from now on work without an observer."""
    if make in _MAKERS:
        _MAKERS.remove(make)


def all_observers() -> list[Observer]:
    """Return the observers of all connections."""
    return [make() for make in _MAKERS]


def process_observers() -> Observers | None:
    """Return the observers for work without a connection, or None if there are none."""
    if not _MAKERS:
        return None
    from twinstream.core.observe.observers import Observers

    return Observers(all_observers())
