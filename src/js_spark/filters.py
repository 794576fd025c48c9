"""Subject filters of a read: which of them matter, and when two lists mean the same."""

from __future__ import annotations

from collections.abc import Iterable

from js_core.subject_match import covers

__all__ = ["same_filter", "widest"]


def widest(filters: Iterable[str]) -> tuple[str, ...]:
    """Return the filters that no other one covers; a consumer takes none that overlap."""
    given = tuple(filters)
    return tuple(
        each for each in given if not any(other != each and covers(other, each) for other in given)
    )


def same_filter(one: str, other: str) -> bool:
    """Tell whether two lists with commas let the same subjects through, whatever their order."""
    return _meaning(one) == _meaning(other)


def _meaning(text: str) -> frozenset[str]:
    return frozenset(widest((text or ">").split(",")))
