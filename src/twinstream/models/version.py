"""Server versions, as used by the rules."""

from __future__ import annotations

import re
from typing import TypeAlias

Version: TypeAlias = tuple[int, int, int]
"""Major, minor and patch number."""

NEWEST: Version = (2, 15, 1)
"""The server version used by default."""

OLDEST: Version = (2, 11, 0)
"""The oldest supported server version."""

Firsts: TypeAlias = tuple[Version, ...]
"""The first version with a feature, or the first of each release line with it, in order."""

ALWAYS: Firsts = ((0, 0, 0),)
NEVER: Firsts = ((999, 0, 0),)

_PATTERN = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?", re.ASCII)

ANY_PATCH = 99
"""Stands for the last patch of a release line, as in a bare "2.12"."""


def parse_version(text: str | None) -> Version:
    """Parse `2.12`, `2.12.8` or `v2.15.0-dev`; None means the newest version.

    Raises `ValueError` for anything else, and for servers older than 2.11.
    """
    if text is None:
        return NEWEST
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a server version; write it as 2.12 or 2.12.8")
    major, minor, patch = match.groups()
    version = (int(major), int(minor), int(patch) if patch else ANY_PATCH)
    if version < OLDEST:
        raise ValueError(f"server {text} is not supported; the oldest is 2.11")
    return version


def number(text: str) -> Version:
    """Return the numbers of a version in the specification; an empty text means always."""
    return tuple(int(part) for part in text.split(".")) if text else (0, 0, 0)  # type: ignore[return-value]


def firsts(given: str | Firsts) -> Firsts:
    """Parse `2.14.2`, or several such as `2.12.10 2.14.2`; an empty text means always."""
    if isinstance(given, str):
        return tuple(number(one) for one in given.split()) or ALWAYS
    return given


def is_from(version: Version, begun: Firsts) -> bool:
    """Whether a server of `version` has a feature with these first versions.

    A release line without a first version of its own has the state of the line before it.
    """
    known = [first for first in begun if first[:2] <= version[:2]]
    return bool(known) and version >= known[-1]
