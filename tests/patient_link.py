"""Connections to real servers in tests where nothing is to time out."""

from __future__ import annotations

from typing import Any, Final

import js_sync
from js_sync import Connection

__all__ = ["READ_PATIENTLY", "connected"]

# Seconds for an answer, which comes in milliseconds unless the machine is busy.
_PATIENCE: Final = 60.0

READ_PATIENTLY: Final = {"nats.requestTimeoutMs": f"{1000 * _PATIENCE:.0f}"}
"""The option of Spark's source and sink."""


def connected(url: str, **options: Any) -> Connection:
    """Connect to a server. Both the connection and requests may take long."""
    return js_sync.connect(url, connect_timeout=_PATIENCE, request_timeout=_PATIENCE, **options)
