"""Match subjects against filters, with the rules of the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from twinstream.core.wire.subjects import check_filter
from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import can_meet, is_contained

__all__ = ["covers", "crossing", "matcher", "mixed", "pattern_of", "widest"]

# The beginning of a token that gets a mark. The mark itself gets one, too, so that different tokens
# stay different.
_ODD_TOKEN: Final = re.compile(r"(?:^|(?<=\.))(?==|[*>][^.])")


def matcher(filters: Iterable[str]) -> Callable[[bytes], object] | None:
    """Return a function that checks whether a subject (bytes) matches one of the filters.

    Return None if there are no filters or if one of them matches everything. Raises `BadArgument`
    for an invalid filter.
    """
    wild: list[bytes] = []
    literal: set[bytes] = set()
    for each in filters:
        if "*" in each or ">" in each:
            wild.append(pattern_of(each))
        else:
            literal.add(check_filter(each))
    if b".+" in wild or not (wild or literal):
        return None
    if not wild:
        # Compiling an expression of thousands of subjects would take a tenth of a second.
        return literal.__contains__
    matches = re.compile(b"|".join(wild), re.DOTALL).fullmatch
    return lambda subject: subject in literal or matches(subject)


def pattern_of(subject: str) -> bytes:
    """Return a filter as a regular expression for whole subjects (bytes).

    The expression is valid in Python and in RE2. Raises `BadArgument` for an invalid filter.
    """
    wild = {b"*": rb"[^.]+", b">": rb".+"}
    tokens = check_filter(subject).split(b".")
    return rb"\.".join(wild.get(token) or re.escape(token) for token in tokens)


def covers(wide: str, narrow: str) -> bool:
    """Return whether the filter `wide` matches every subject that the filter `narrow` matches."""
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
    """Return the filters that no other filter covers.

    Servers reject a consumer or a source if one of its filters covers another.
    """
    given = tuple(dict.fromkeys(filters))
    plain = [_plain(each) for each in given]
    covered = first_related(plain, plain, is_contained, apart=True)
    return tuple(each for index, each in enumerate(given) if index not in covered)


def crossing(filters: Sequence[str]) -> bool:
    """Return whether one subject can match two of the filters.

    For example, `a.b` matches both `a.*` and `*.b`.
    """
    plain = [_plain(each) for each in filters]
    return bool(first_related(plain, plain, can_meet, later=True))


def mixed(filters: Iterable[str]) -> bool:
    """Return whether one filter has `*` where another one, which is equal before, has a word.

    For example, `a.*` and `a.b.c`. `MIXED_FILTERS` says why this matters.
    """
    words: set[tuple[str, ...]] = set()
    wildcards: set[tuple[str, ...]] = set()
    for each in filters:
        tokens = tuple(each.split("."))
        for at, token in enumerate(tokens):
            if token != ">":
                (wildcards if token == "*" else words).add(tokens[:at])
    return not words.isdisjoint(wildcards)


def _plain(subject: str) -> str:
    """Return a filter for `first_related`, with a mark before tokens such as `*a`.

    `first_related` compares the subjects of streams as the server does: there, each token that
    begins with `*` is a wildcard. In a filter, only the token `*` is one.
    """
    return _ODD_TOKEN.sub("=", subject)
