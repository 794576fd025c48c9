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
    subject = _undone(source.split("."), target.split("."), stored.split(".")) if target else stored
    if subject is None or transformed(transform, subject) != stored:
        return None
    return subject


def _undone(sources: list[str], targets: list[str], tokens: list[str]) -> str | None:
    has_rest = targets[-1] == ">"
    fixed = targets[:-1] if has_rest else targets
    if len(tokens) < len(targets) or (not has_rest and len(tokens) > len(targets)):
        return None
    wildcards: dict[int, str] = {}
    for target, token in zip(fixed, tokens, strict=False):
        function = token_function(target)
        if function is None:
            continue
        if function.name.startswith(_SEVERAL):
            return None
        wildcards |= _known(function, token)
    made: list[str] = []
    stars = 0
    for source in sources:
        if source == ">":
            made += tokens[len(fixed) :]
            continue
        if source == "*":
            stars += 1
            if stars not in wildcards:
                return None
            source = wildcards[stars]
        made.append(source)
    return ".".join(made)


def _known(function: TokenFunction, token: str) -> dict[int, str]:
    """Return the wildcard of the source that a token of the result repeats, by its number."""
    return {function.indexes[0]: token} if function.name == "wildcard" else {}
