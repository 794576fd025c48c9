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
"""The first server versions with a feature: one version, or one for each release line in order."""

NO_PARTITIONS_SINCE: Version = (2, 12, 0)
"""The first server that returns partition 0 for 0 partitions; older servers divide by 0."""

ALWAYS: Firsts = ((0, 0, 0),)
NEVER: Firsts = ((999, 0, 0),)

_PATTERN = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?", re.ASCII)

ANY_PATCH = 99
"""The patch number used if a version has none: `2.12` means the last patch of its release line."""


def parse_version(text: str | None) -> Version:
    """Return the version in text such as `2.12`, `2.12.8` or `v2.15.0-dev`; None means the newest.

    Raises `ValueError` for other text, and for servers older than 2.11.
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
    """Return the version in text such as `2.12.0`; empty text means every version."""
    return tuple(int(part) for part in text.split(".")) if text else (0, 0, 0)  # type: ignore[return-value]


def firsts(given: str | Firsts) -> Firsts:
    """Return the versions in text such as `2.12.10 2.14.2`; empty text means every version.

    Versions that are already parsed are returned unchanged.
    """
    if isinstance(given, str):
        return tuple(number(one) for one in given.split()) or ALWAYS
    return given


def is_from(version: Version, begun: Firsts) -> bool:
    """Whether a server of `version` has a feature that begins with the versions `begun`.

    A release line that is not in `begun` has the feature if an earlier line is in `begun`.
    """
    known = [first for first in begun if first[:2] <= version[:2]]
    return bool(known) and version >= known[-1]
