"""Undo the subject transform of a stream, as far as its configuration determines the original."""

from __future__ import annotations

from typing import Final

from twinstream.models import SubjectTransform
from twinstream.models.names.transform_rules import TokenFunction, token_function
from twinstream.models.names.transforms import transform_subject

__all__ = ["before_transform", "transformed"]

# Functions that may produce several tokens, so that the places of the later ones are unknown.
_SEVERAL: Final = ("split", "slice")


def transformed(transform: SubjectTransform, subject: str) -> str | None:
    """Return the subject to which a transform changes `subject`.

    Return None if the transform does not apply, or if only the server knows the result.
    """
    try:
        return transform_subject(transform.src or "", transform.dest or "", subject)
    except (ValueError, IndexError):
        return None


def before_transform(transform: SubjectTransform, stored: str) -> str | None:
    """Return the one subject that a transform changes to `stored`.

    Return None if there is none, or if the transform does not determine all its tokens.
    """
    source, target = transform.src or ">", transform.dest or ""
    subject: str | None = stored
    if target:
        subject = _original_subject(source.split("."), target.split("."), stored.split("."))
    if subject is None or transformed(transform, subject) != stored:
        return None
    return subject


def _original_subject(sources: list[str], targets: list[str], tokens: list[str]) -> str | None:
    """Return the subject that a transform changed to `tokens`, or None if that is unknown.

    `sources` and `targets` are the tokens of the transform's source and destination.
    """
    has_rest = targets[-1] == ">"
    fixed = targets[:-1] if has_rest else targets
    # `>` stands for one or more tokens.
    fits = len(tokens) >= len(targets) if has_rest else len(tokens) == len(targets)
    if not fits:
        return None
    wildcards: dict[int, str] = {}
    for target, token in zip(fixed, tokens, strict=False):
        function = token_function(target)
        if function is None:
            continue
        if function.name.startswith(_SEVERAL):
            return None
        wildcards |= _known(function, token)
    original: list[str] = []
    wildcard = 0
    for source in sources:
        if source == ">":
            original += tokens[len(fixed) :]
            continue
        if source == "*":
            wildcard += 1
            if wildcard not in wildcards:
                return None
            source = wildcards[wildcard]
        original.append(source)
    return ".".join(original)


def _known(function: TokenFunction, token: str) -> dict[int, str]:
    """Return the wildcard of the source that a token of the result repeats, by its number."""
    return {function.indexes[0]: token} if function.name == "wildcard" else {}
