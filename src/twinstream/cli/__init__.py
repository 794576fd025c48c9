"""The `twinstream` command, for example to validate configurations, publish and consume.

The command is a thin layer over `twinstream.models` and `js_sync`. It needs click and rich
(extra `cli`). Standard output contains only results, with `--json` only JSON. Progress and
errors are printed to standard error. Exit codes: 0 for success, 1 if the command found problems or
failed, 2 for wrong usage, 3 if an object does not exist.
"""

from __future__ import annotations
