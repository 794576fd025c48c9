# Generated from tests/_async/leaders.py by codegen/twin.py. Edit that file instead.
"""Changing who leads, as trouble for others."""

from __future__ import annotations

from contextlib import suppress

import js_sync as js
from tests._sync.flow import eventually


def step_down(connection, target):
    """Have a leader hand over: asked again while there is none, for then nobody answers."""

    def asked():
        with suppress(js.RequestTimeout):
            connection.request(f"$JS.API.{target}", timeout=2)
            return True
        return False

    eventually(asked, patience=60)
