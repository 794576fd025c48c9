"""Our asyncio form on uvloop's event loop."""

from __future__ import annotations

import asyncio

import uvloop

from tests.bench.clients.js_async import consume, drain, fetch, idle, next_, pipelined, publish

__all__ = ["consume", "drain", "fetch", "idle", "next_", "pipelined", "publish"]

# This process measures nothing else.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
