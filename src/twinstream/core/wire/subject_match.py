"""Tell whether a subject matches filters, as the server does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from twinstream.core.wire.subjects import check_filter

__all__ = ["covers", "crossing", "matcher", "widest"]


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


def widest(filters: Iterable[str]) -> tuple[str, ...]:
    """Return the filters that no other one covers; a consumer takes no others beside them."""
    given = tuple(dict.fromkeys(filters))
    # A literal subject covers nothing but itself, and there may be many.
    wild = [each for each in given if "*" in each or ">" in each]
    return tuple(
        each for each in given if not any(other != each and covers(other, each) for other in wild)
    )


def crossing(filters: Sequence[str]) -> bool:
    """Tell whether a subject may match two of the filters, as `a.b` does `a.*` and `*.b`."""
    return any(
        _meet(one.split("."), other.split("."))
        for index, one in enumerate(filters)
        for other in filters[:index]
    )


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    for token, test in zip(one, other, strict=False):
        if ">" in {token, test}:
            return True
        if token != test and "*" not in {token, test}:
            return False
    return len(one) == len(other)
