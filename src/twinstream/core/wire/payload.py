"""Payloads as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

from twinstream.errors import BadPayload

__all__ = ["as_json", "as_text"]


def as_text(data: bytes, subject: str) -> str:
    """Return a payload as text; raises `BadPayload` unless it is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadPayload(f"{subject}: the payload is not UTF-8: {error}") from error


def as_json(data: bytes, subject: str) -> Any:
    """Return the value that a payload is in JSON; raises `BadPayload`."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadPayload(f"{subject}: the payload is not JSON: {reason}") from error
