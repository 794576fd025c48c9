"""Server versions, as far as rules depend on them."""

from __future__ import annotations

import re
from typing import TypeAlias

Version: TypeAlias = tuple[int, int, int]
"""Major, minor and patch number."""

NEWEST: Version = (2, 15, 1)
"""The server whose rules are meant when nobody names one."""

OLDEST: Version = (2, 11, 0)
"""The oldest server whose rules are known."""

Firsts: TypeAlias = tuple[Version, ...]
"""Where something began: the first server, or the first of each line that got it, in order."""

ALWAYS: Firsts = ((0, 0, 0),)
NEVER: Firsts = ((999, 0, 0),)

_PATTERN = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?", re.ASCII)

ANY_PATCH = 99
"""Stands for the last patch of a line: what a bare "2.12" means."""


def parse_version(text: str | None) -> Version:
    """Return the numbers of ``2.12``, ``2.12.8`` or ``v2.15.0-dev``; the newest for None.

    Raises ``ValueError`` for anything else, and for servers older than 2.11.
    """
    if text is None:
        return NEWEST
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a server version; write it as 2.12 or 2.12.8")
    major, minor, patch = match.groups()
    version = (int(major), int(minor), int(patch) if patch else ANY_PATCH)
    if version < OLDEST:
        raise ValueError(f"rules of server {text} are not known; the oldest is 2.11")
    return version


def number(text: str) -> Version:
    """Return the numbers of a version in the spec; an empty one means always."""
    return tuple(int(part) for part in text.split(".")) if text else (0, 0, 0)  # type: ignore[return-value]


def firsts(given: str | Firsts) -> Firsts:
    """Return the versions of ``2.14.2``, or of ``2.12.10 2.14.2``; an empty text means always."""
    if isinstance(given, str):
        return tuple(number(one) for one in given.split()) or ALWAYS
    return given


def is_from(version: Version, begun: Firsts) -> bool:
    """Whether a server of ``version`` has what began with ``begun``.

    A line that has no first of its own has what the line before it ended with.
    """
    known = [first for first in begun if first[:2] <= version[:2]]
    return bool(known) and version >= known[-1]
