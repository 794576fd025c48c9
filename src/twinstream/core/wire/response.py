"""Reading and writing JSON: what JetStream answers with, what it is asked, what others stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, cast

from twinstream.errors import BadAnswer, BadArgument, api_error
from twinstream.core.wire.header_text import valid

__all__ = ["read_answer", "read_json", "read_object", "write_json"]


def read_json(text: str | bytes) -> object:
    """Return what JSON says; raises ValueError for anything else, and for what is too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def write_json(members: Mapping[str, Any]) -> bytes:
    """Return JSON without blanks. Raises `BadArgument` for text that UTF-8 cannot hold."""
    try:
        return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        path, text = _unfit(members)
        raise BadArgument(f"{path}: {text!r} is not valid Unicode") from error


def _unfit(value: object, path: str = "") -> tuple[str, str]:
    """Return the first text that UTF-8 cannot hold, and its path; two empty ones without any."""
    parts: Iterable[tuple[str, object]] = ()
    if isinstance(value, str):
        return ("", "") if valid(value) == value else (path, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        parts = chain(
            ((path or "a key", name) for name in members),
            ((f"{path}.{name}" if path else name, each) for name, each in members.items()),
        )
    elif isinstance(value, list):
        items = cast("list[object]", value)
        parts = ((f"{path}[{index}]", each) for index, each in enumerate(items))
    return next((found for place, each in parts if (found := _unfit(each, place))[0]), ("", ""))


def read_object(text: bytes) -> dict[str, Any]:
    """Return a JSON object; raises ValueError for anything else."""
    # Decoded here, because json would first look for which of five encodings it is.
    loaded = read_json(str(text, "utf-8"))
    if not isinstance(loaded, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", loaded)


def read_answer(payload: bytes, subject: str) -> dict[str, Any]:
    """Return the members of an answer from `subject`, or raise the error that it carries.

    Raises a `JetStreamError`, or `BadAnswer` when it is no answer of JetStream's: a core
    subscriber on the same subject answered, say.
    """
    try:
        members = read_object(payload)
    except ValueError as error:
        raise BadAnswer(f"{subject}: the answer is not JetStream's: {payload[:80]!r}") from error
    refusal: object = members.get("error")
    if isinstance(refusal, dict):
        raise api_error(cast("dict[str, object]", refusal), subject=subject)
    if refusal is not None:
        raise BadAnswer(f"{subject}: the error in the answer is no object: {payload[:80]!r}")
    return members
