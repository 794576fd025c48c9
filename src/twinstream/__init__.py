"""Twinstream: NATS JetStream for Python. Applications import `js_sync` or `js_async`."""

from __future__ import annotations

from typing import Final

__all__ = ["__version__"]

__version__: Final = "0.1.0"
