"""The seed of the fuzzing within pytest."""

from __future__ import annotations

import time
from typing import Final

from tests.left_out import LONG

__all__ = ["SEED"]

SEED: Final = time.time_ns() % 1_000_000_000 if LONG else 1
"""Where to begin. `make test` feeds the same inputs each time, so that it always ends the same way.

`make test-long` draws the seed, and so do `make fuzz` and `make fuzz-wire`. A finding names its
seed, so that it can be repeated.
"""
