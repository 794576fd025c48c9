"""Compare two lists of subject filters."""

from __future__ import annotations

from twinstream.core.wire.subject_match import widest

__all__ = ["same_filter"]


def same_filter(one: str, other: str) -> bool:
    """Return whether two comma-separated lists of filters match the same subjects.

    An empty list matches all subjects.
    """
    return _meaning(one) == _meaning(other)


def _meaning(text: str) -> frozenset[str]:
    return frozenset(widest((text or ">").split(",")))
