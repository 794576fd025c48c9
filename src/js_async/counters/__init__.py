"""Counters: numbers of any size in a stream, to which many clients add (server 2.12).

Each subject of a stream with `allow_msg_counter` is a counter. `Counters` adds to them and reads
them; an addition counts once, also if it is repeated after a lost response.
"""

from __future__ import annotations

from js_async.counters.counters import Counters
from twinstream.core.counters.counters import Counter

__all__ = ["Counter", "Counters"]
