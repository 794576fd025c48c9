"""Names and subjects, judged as the server does.

Two relations matter. A subject is *contained* in another when the other matches all that it
matches; two subjects *meet* when some subject matches both. Where one would compare a whole token
with a wildcard, both look at its first letter only, because the server does.
"""

from __future__ import annotations

_BLANKS = " \t\r\n\f"
_NAME_REFUSED = frozenset(_BLANKS + ".*>")
_SEPARATORS = frozenset("\\/")
_TOKEN_REFUSED = frozenset(_BLANKS)

NAME_MAX_BYTES = 255


def name_fault(name: str, *, separators: bool = False) -> str | None:
    """Return what is wrong with a stream's or consumer's name, None for nothing.

    With ``separators`` those of file paths are allowed.
    """
    if not name:
        return "is empty"
    for letter in name:
        if letter in _NAME_REFUSED or (letter in _SEPARATORS and not separators):
            return f"has the character {letter!r}"
    return None


def is_subject(subject: str) -> bool:
    """Whether this is a subject, wildcards allowed."""
    if not subject or not _TOKEN_REFUSED.isdisjoint(subject):
        return False
    tokens = subject.split(".")
    return "" not in tokens and ">" not in tokens[:-1]


def is_literal(subject: str) -> bool:
    """Whether no token is a wildcard."""
    return not any(token in ("*", ">") for token in subject.split("."))


def is_literal_subject(subject: str) -> bool:
    """Whether this is a subject without wildcards."""
    return is_subject(subject) and is_literal(subject)


def is_contained(subject: str, other: str) -> bool:
    """Whether ``other`` matches all that ``subject`` matches."""
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
    """Whether some subject matches both."""
    if one == two:
        return True
    if is_literal(one):
        return not is_literal(two) and is_contained(one, two)
    if is_literal(two):
        return is_contained(two, one)
    return _wildcards_can_meet(one.split("."), two.split("."))


def _wildcards_can_meet(one: list[str], two: list[str]) -> bool:
    if len(one) > len(two) and ">" not in two:
        return False
    if len(two) > len(one) and ">" not in one:
        return False
    pairs = zip(one, two, strict=False)
    return all(
        bool(a and b) and (a == b or a[0] in ("*", ">") or b[0] in ("*", ">")) for a, b in pairs
    )
