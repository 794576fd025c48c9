"""How long the long scenarios run, and where they state what they saw."""

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
    """Show a finding: at once in a long run, with a failure otherwise."""
    print(line, file=sys.__stdout__ if LONG else sys.stdout, flush=True)
