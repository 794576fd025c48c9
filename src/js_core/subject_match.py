"""Tell whether a subject matches filters, as the server does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from js_core.subjects import check_filter

__all__ = ["covers", "matcher"]


def matcher(filters: Iterable[str]) -> Callable[[bytes], object] | None:
    """Return a function that is true for subjects (bytes) that match a filter.

    ``None`` when there are no filters or one of them lets everything pass. Raises `BadArgument`
    for a filter that is no subject.
    """
    patterns = [_pattern(check_filter(each)) for each in filters]
    if not patterns or b".+" in patterns:
        return None
    return re.compile(b"|".join(patterns), re.DOTALL).fullmatch


def _pattern(subject: bytes) -> bytes:
    wild = {b"*": rb"[^.]+", b">": rb".+"}
    return rb"\.".join(wild.get(token) or re.escape(token) for token in subject.split(b"."))


def covers(wide: str, narrow: str) -> bool:
    """Tell whether a filter matches everything that another one matches."""
    tests, tokens = wide.split("."), narrow.split(".")
    for index, test in enumerate(tests):
        if index >= len(tokens):
            return False
        if test == ">":
            return True
        if tokens[index] == ">" or (test not in {"*", tokens[index]}):
            return False
    return len(tokens) == len(tests)
