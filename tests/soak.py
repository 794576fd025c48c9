"""The length of long scenarios, and their output."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

__all__ = ["LONG", "LONGEST", "rounds", "sampled", "spread", "state"]

_T = TypeVar("_T")

LONG = bool(os.environ.get("TWINSTREAM_SOAK"))
"""Set by `make soak`."""

LONGEST = 3600.0 if LONG else 1000.0
"""The seconds after which a test hangs. It takes seconds; on a busy, slow machine some minutes."""


def rounds(short: int, long: int) -> int:
    """Return how many rounds to run."""
    return long if LONG else short


def sampled(points: Sequence[_T], short: int, long: int | None = None) -> list[_T]:
    """Return `short` or `long` points as `spread` does. Without `long`, a long run has all."""
    return spread(points, rounds(short, len(points) if long is None else long), random.Random())


def spread(points: Sequence[_T], count: int, dice: random.Random) -> list[_T]:
    """Return some points, in their order: one of each of `count` equal parts, but at most all.

    So points of one kind should be together.
    """
    count = min(count, len(points))
    ends = [len(points) * part // count for part in range(count + 1)]
    return [points[dice.randrange(first, end)] for first, end in pairwise(ends)]


def state(line: str) -> None:
    """Print a finding: immediately in a long run, otherwise only if the test fails."""
    print(line, file=sys.__stdout__ if LONG else sys.stdout, flush=True)
