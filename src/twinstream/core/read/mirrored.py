"""The subjects of mirrored messages: those in the mirror, and those in the stream it copies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from twinstream.core.wire.subject_match import covers, crossing
from twinstream.models import StreamConfig, StreamSource

__all__ = ["copies_of", "destinations", "first_tokens", "is_read_only_copy", "origin_subject"]

# A wildcard or a function in the pattern of a transform. The key-value prefix `$KV` is neither.
_VARIABLE: Final = re.compile(r"[*>]|\{\{|\$\d")


def destinations(source: StreamSource) -> list[str]:
    """Return the destinations of the source's subject transforms; empty without transforms."""
    return [each.dest or each.src or ">" for each in source.subject_transforms or ()]


def first_tokens(subjects: list[str], count: int) -> str | None:
    """Return the first tokens that all subjects have in common, with a dot after each of them.

    Returns None if the subjects differ in these tokens, or if one of the tokens is variable.
    """
    starts = {tuple(each.split(".")[:count]) for each in subjects}
    if len(starts) != 1:
        return None
    start = starts.pop()
    if len(start) < count or any(map(_VARIABLE.search, start)):
        return None
    return ".".join(start) + "."


def origin_subject(mirror: StreamSource, subject: str) -> str | None:
    """Return the subject in the origin of a message that has this subject in the mirror.

    Returns None if the mirror copies no such message, or if its transforms cannot be reversed.
    """
    transforms = mirror.subject_transforms
    if not transforms:
        wanted = mirror.filter_subject
        return subject if not wanted or covers(wanted, subject) else None
    found: list[str] = []
    for each in transforms:
        src, dest = each.src or ">", each.dest or each.src or ">"
        ends, begins = _fixed(src), _fixed(dest)
        if ends is None or begins is None or ends[1] != begins[1]:
            return None
        start, is_open = begins
        if subject == start or (is_open and subject.startswith(start)):
            found.append(ends[0] + subject[len(start) :])
    return found[0] if len(found) == 1 else None


def _fixed(pattern: str) -> tuple[str, bool] | None:
    """Return the fixed start of a pattern and whether it ends with `>`; None if it varies."""
    is_open = pattern == ">" or pattern.endswith(".>")
    start = pattern[:-1] if is_open else pattern
    return None if _VARIABLE.search(start) else (start, is_open)


def is_read_only_copy(config: StreamConfig, prefix: str) -> bool:
    """Return whether a stream has no subjects, and its sources store subjects with a prefix."""
    if config.subjects or config.mirror is not None or not config.sources:
        return False
    return any(each.startswith(prefix) for one in config.sources for each in destinations(one))


def copies_of(source: StreamSource, streams: Sequence[StreamConfig]) -> bool:
    """Return whether a source selects messages of a mirror.

    `streams` are the mirror and the streams that it copies, directly or through others.
    """
    mirrors = [each.mirror for each in streams if each.mirror is not None]
    changed = [each for one in mirrors for each in destinations(one)]
    # The origin's subjects are known if no mirror transforms them, and if they were requested.
    known = changed or (streams[-1].subjects if streams[-1].mirror is None else None)
    if not known:
        return True
    wanted = [each.src or ">" for each in source.subject_transforms or ()]
    wanted = wanted or [source.filter_subject or ">"]
    return _can_meet(wanted, known)


def _can_meet(ones: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a subject can match one of the filters `ones` and one of `others`."""
    return any(crossing([one, other]) for one in ones for other in others if one != other) or bool(
        set(ones) & set(others)
    )
