"""Longer limits of calls, for what is not to time out.

A busy machine may run nothing of a process for longer than the 5 s that are the default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypedDict

import js_sync

__all__ = ["LIMIT", "READ_PATIENTLY", "UNHURRIED", "Timeouts", "connected", "long_limits"]

LIMIT: Final = 60.0
"""Seconds for an attempt to connect, and for each request."""


class Timeouts(TypedDict):
    """The seconds that a connection has: for an attempt to connect, and for each request."""

    connect_timeout: float
    request_timeout: float


UNHURRIED: Final = Timeouts(connect_timeout=LIMIT, request_timeout=LIMIT)
"""The options of a connection: `js_sync.connect(url, **UNHURRIED)`."""

READ_PATIENTLY: Final = {"nats.requestTimeoutMs": f"{1000 * LIMIT:.0f}"}
"""The option of Spark's source and sink."""


def connected(url: str, **options: Any) -> js_sync.Connection:
    """Connect the blocking twin to a server, with these limits."""
    return js_sync.connect(url, **UNHURRIED, **options)


@contextmanager
def long_limits(connect: Callable[..., Any]) -> Iterator[None]:
    """Within the block, give the function `connect` of a twin these limits by default."""
    defaults: dict[str, Any] = inspect.unwrap(connect).__kwdefaults__  # type: ignore[attr-defined]
    before = dict(defaults)
    defaults.update(UNHURRIED)
    try:
        yield
    finally:
        defaults.update(before)
