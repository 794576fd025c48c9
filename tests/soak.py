"""The length of long scenarios, and their output."""

from __future__ import annotations

import os
import sys

__all__ = ["LONG", "rounds", "state"]

LONG = bool(os.environ.get("TWINSTREAM_SOAK"))
"""Set by `make soak`."""


def rounds(short: int, long: int) -> int:
    """Return how many rounds to run."""
    return long if LONG else short


def state(line: str) -> None:
    """Print a finding: immediately in a long run, otherwise only if the test fails."""
    print(line, file=sys.__stdout__ if LONG else sys.stdout, flush=True)
