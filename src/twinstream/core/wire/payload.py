"""Payloads as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from twinstream.errors import BadPayload

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    P = TypeVar("P", default=bytes)
else:
    from typing import TypeVar

    # The type of the payload of a message. `Message` alone is `Message[bytes]` to type checkers.
    P = TypeVar("P")

__all__ = ["P", "Unread", "as_json", "as_text"]


class Unread:
    """Stands for the payload of a typed message before its first use.

    An absent slot would cost an exception.
    """


def as_text(data: bytes, subject: str) -> str:
    """Return a payload as text; raises `BadPayload` unless it is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadPayload(f"{subject}: the payload is not UTF-8: {error}") from error


def as_json(data: bytes, subject: str) -> Any:
    """Return a payload decoded as JSON; raises `BadPayload` if it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadPayload(f"{subject}: the payload is not JSON: {reason}") from error
