"""JSON text of payloads, as RFC 8259 defines it: without NaN and infinite numbers."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from twinstream.errors.payload import PayloadError

__all__ = ["JSON", "from_json", "to_json"]

JSON: Final = "application/json"
"""The media type."""


def to_json(plain: Any) -> bytes:
    """Return plain data as JSON. Raises `ValueError` or `TypeError` for other data."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def from_json(data: bytes) -> Any:
    """Return the plain data of a payload. Raises `PayloadError` if it is not JSON."""
    try:
        return json.loads(data, parse_constant=_refused)
    except RecursionError as error:
        raise PayloadError("", "nested too deeply") from error
    except ValueError as error:
        raise PayloadError("", f"not JSON: {error}") from error


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
