"""Subject filters of a read: when two lists of them mean the same."""

from __future__ import annotations

from twinstream.core.wire.subject_match import widest

__all__ = ["same_filter"]


def same_filter(one: str, other: str) -> bool:
    """Tell whether two lists with commas let the same subjects through, whatever their order."""
    return _meaning(one) == _meaning(other)


def _meaning(text: str) -> frozenset[str]:
    return frozenset(widest((text or ">").split(",")))
