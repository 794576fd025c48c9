"""Timeouts for what is not to time out: `js_sync.connect(url, **UNHURRIED)`."""

from __future__ import annotations

from typing import Final, TypedDict

__all__ = ["UNHURRIED", "Timeouts"]


class Timeouts(TypedDict):
    """The seconds that a connection has: for an attempt to connect, and for each request."""

    connect_timeout: float
    request_timeout: float


UNHURRIED: Final = Timeouts(connect_timeout=60, request_timeout=60)
"""Longer than any pause of a busy machine. The defaults, of 5 s, are not."""
