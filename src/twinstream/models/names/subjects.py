"""Validation and comparison of names and subjects, with the rules of the server.

Two relations are used. Subject A is *contained* in subject B if B matches everything that A
matches. Two subjects *meet* if they have a match in common. Where a token must be a wildcard, some
comparisons check only the first character of the token, because the server does so.
"""

from __future__ import annotations

_BLANKS = " \t\r\n\f"
_NAME_REFUSED = frozenset(_BLANKS + ".*>")
_SEPARATORS = frozenset("\\/")
_TOKEN_REFUSED = frozenset(_BLANKS)

NAME_MAX_BYTES = 255


def name_fault(name: str, *, separators: bool = False) -> str | None:
    """Return what is wrong with the name of a stream or consumer, or None if it is valid.

    With `separators`, the slash and the backslash are allowed.
    """
    if not name:
        return "is empty"
    for letter in name:
        if letter in _NAME_REFUSED or (letter in _SEPARATORS and not separators):
            return f"has the character {letter!r}"
    return None


def is_subject(subject: str) -> bool:
    """Whether `subject` is valid, with or without wildcards."""
    if not subject or not _TOKEN_REFUSED.isdisjoint(subject):
        return False
    tokens = subject.split(".")
    return "" not in tokens and ">" not in tokens[:-1]


def is_literal(subject: str) -> bool:
    """Whether no token of `subject` is a wildcard."""
    return not any(token in ("*", ">") for token in subject.split("."))


def is_literal_subject(subject: str) -> bool:
    """Whether `subject` is valid and has no wildcards."""
    return is_subject(subject) and is_literal(subject)


def is_contained(subject: str, other: str) -> bool:
    """Whether `other` matches everything that `subject` matches."""
    tokens, tests = subject.split("."), other.split(".")
    for index, test in enumerate(tests):
        if index >= len(tokens) or not test:
            return False
        if test == ">":
            return True
        token = tokens[index]
        if not token or token == ">":
            return False
        if token == "*":
            if test != "*":
                return False
        elif test[0] != "*" and token != test:
            return False
    return len(tokens) == len(tests)


def can_meet(one: str, two: str) -> bool:
    """Whether the subjects `one` and `two` have a match in common."""
    if one == two:
        return True
    if is_literal(one):
        return not is_literal(two) and is_contained(one, two)
    if is_literal(two):
        return is_contained(two, one)
    return _wildcards_can_meet(one.split("."), two.split("."))


def _wildcards_can_meet(one: list[str], two: list[str]) -> bool:
    """Return whether a subject can match both patterns, which are given as tokens."""
    if len(one) > len(two) and ">" not in two:
        return False
    if len(two) > len(one) and ">" not in one:
        return False
    pairs = zip(one, two, strict=False)
    return all(
        bool(a and b) and (a == b or a[0] in ("*", ">") or b[0] in ("*", ">")) for a, b in pairs
    )
