"""Reading the JSON that JetStream answers with."""

from __future__ import annotations

import json
from typing import Any, cast

from js_core.errors import BadAnswer, api_error

__all__ = ["read_answer", "read_object"]


def read_object(text: bytes) -> dict[str, Any]:
    """Return a JSON object; raises ValueError for anything else."""
    try:
        # Decoded here, because json would first look for which of five encodings it is.
        loaded: object = json.loads(str(text, "utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
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
    return members
