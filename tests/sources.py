"""The source files as text and as syntax trees, read once in each process.

`tests/conftest.py` gives the tests of this module's users to one process.
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

__all__ = ["PACKAGES", "USERS", "text_of", "tree_of"]

USERS = (
    "tests/core/log/test_log.py",
    "tests/core/server_faults/test_table.py",
    "tests/test_layering.py",
    "tests/test_project.py",
    "tests/test_twins.py",
)
"""The test files that read most of the sources."""

PACKAGES = (
    "backup",
    "coordination",
    "counters",
    "exactly_once",
    "fast_ingest",
    "groups",
    "health",
    "outbox",
    "schedules",
    "workers",
)
"""The packages above the client, in both twins."""


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text("utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file. Tests must not change it."""
    # All nodes are kept. Searching them for garbage takes longer than parsing.
    gc.disable()
    try:
        return ast.parse(text_of(path))
    finally:
        gc.enable()
