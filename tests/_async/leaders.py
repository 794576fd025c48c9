"""Change leaders while other clients work."""

from __future__ import annotations

from contextlib import suppress

import js_async as js
from tests._async.flow import eventually


async def step_down(connection, target):
    """Request that a leader steps down; repeat the request while no leader responds."""

    async def asked():
        with suppress(js.RequestTimeout):
            await connection.request(f"$JS.API.{target}", timeout=2)
            return True
        return False

    await eventually(asked, patience=60)
