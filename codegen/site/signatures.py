"""Signatures as the reference shows them: with annotations, without what users cannot pass."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any

import attrs

__all__ = ["is_coroutine", "parameters", "signature"]

_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def signature(value: Any) -> str:
    """Return the parameters of a function or class with its annotations, in brackets."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    parts: list[str] = []
    keywords = False
    for each in parameters(value):
        if each.kind is each.KEYWORD_ONLY and not keywords:
            keywords = True
            parts.append("*")
        keywords |= each.kind is each.VAR_POSITIONAL
        parts.append(_STARS.get(each.kind, "") + each.name + _annotation(each) + _default(each))
    returned = found.return_annotation
    end = "" if isinstance(value, type) or returned is found.empty else f" -> {_text(returned)}"
    return f"({', '.join(parts)}){end}"


def parameters(value: Any) -> list[inspect.Parameter]:
    """Return the parameters that users can pass."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    hidden = {"self", "cls", "unknown"}
    return [each for each in found if each.name not in hidden and each.annotation != "Never"]


def is_coroutine(value: Any) -> bool:
    """Return whether calls of a function have to be awaited."""
    return inspect.iscoroutinefunction(inspect.unwrap(value))


def _annotation(parameter: inspect.Parameter) -> str:
    if parameter.annotation is parameter.empty:
        return ""
    return f": {_text(parameter.annotation)}"


def _text(annotation: object) -> str:
    if isinstance(annotation, str):
        return annotation.strip("'\"")
    if isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is attrs.NOTHING:
        return " = ..."
    if isinstance(value, Enum):
        return f" = {value.value!r}"
    simple = value is None or value == () or isinstance(value, bool | int | float | str | bytes)
    return f" = {value!r}" if simple else " = ..."
