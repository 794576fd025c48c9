"""The ``twinstream`` command: validate configurations, publish, consume, look at streams, demo.

A thin layer over ``twinstream.models`` and ``js_sync`` with click and rich (extra ``cli``). Standard
output carries results alone, and with ``--json`` nothing but JSON; progress and errors go to
standard error. Exit codes: 0 all well, 1 problems found or the work failed, 2 wrong usage.
"""

from __future__ import annotations
