"""Our blocking form with `busy_poll` (see `Job.busy_poll`)."""

from __future__ import annotations

from tests.bench.clients.js_sync import idle, next_, publish

__all__ = ["idle", "next_", "publish"]
