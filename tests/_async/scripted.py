"""A connection to a scripted server, for scenarios that need nothing else of that server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import js_async as js
from twinstream.testing import FakeServer, Script


@asynccontextmanager
async def scripted(*scripts: Script, **options: Any) -> AsyncIterator[js.Connection]:
    """Connect to a server that follows scripts, one for each connection in turn.

    The options are those of `connect`. At the end, an error of a script is raised.
    """
    with FakeServer(*scripts) as server:
        async with js.connect(server.url, **options) as connection:
            yield connection
