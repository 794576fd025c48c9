"""Which examples the property tests draw: `make test-fast` draws fewer of them.

`make test` draws the same examples each time, so that it always ends the same way; `make
test-long` and `make soak` draw others each time.
"""

from __future__ import annotations

import hypothesis

from tests.left_out import LONG

__all__ = ["examples", "register_profiles"]

_WHOLE = 100
_FEW = 25


def register_profiles() -> None:
    """Register the profiles of Hypothesis; `--hypothesis-profile few` chooses the second."""
    # The speed of the machine says nothing about the code.
    slow = [hypothesis.HealthCheck.too_slow]
    for name, count in (("any machine", _WHOLE), ("few", _FEW)):
        hypothesis.settings.register_profile(
            name,
            deadline=None,
            max_examples=count,
            suppress_health_check=slow,
            derandomize=not LONG,
        )
    hypothesis.settings.load_profile("any machine")


def examples(whole: int) -> int:
    """Return how many examples to draw where the whole form of a test draws `whole`."""
    return whole * hypothesis.settings.default.max_examples // _WHOLE
