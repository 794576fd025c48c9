"""Longer default limits of calls: a machine may run nothing of a process for several seconds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["LONG_LIMIT", "long_limits"]

LONG_LIMIT: Final = 60.0
"""Seconds that connecting and each request may take."""


@contextmanager
def long_limits(connect: Callable[..., Any]) -> Iterator[None]:
    """Within the block, give the function `connect` of a twin longer limits by default."""
    defaults: dict[str, Any] = inspect.unwrap(connect).__kwdefaults__  # type: ignore[attr-defined]
    before = dict(defaults)
    defaults.update(connect_timeout=LONG_LIMIT, request_timeout=LONG_LIMIT)
    try:
        yield
    finally:
        defaults.update(before)
