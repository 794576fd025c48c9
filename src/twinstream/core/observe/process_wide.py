"""Observers of all connections of this process that are opened from now on, in both twins.

Connections look for this module in `sys.modules`: a program that does not import it pays nothing.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.observe.observer import Observer
from twinstream.core.observe.observers import Observers

__all__ = ["add", "all_observers", "process_observers", "remove"]

_OBSERVERS: Final[list[Observer]] = []


def add(observer: Observer) -> None:
    """Let an observer see all connections that are opened from now on."""
    if observer not in _OBSERVERS:
        _OBSERVERS.append(observer)


def remove(observer: Observer) -> None:
    """Let connections that are opened from now on work without an observer."""
    if observer in _OBSERVERS:
        _OBSERVERS.remove(observer)


def all_observers() -> list[Observer]:
    """Return the observers of all connections."""
    return list(_OBSERVERS)


def process_observers() -> Observers | None:
    """Return the observers for work without a connection, or None if there are none."""
    return Observers(_OBSERVERS) if _OBSERVERS else None
