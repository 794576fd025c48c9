"""The type of JSON objects in signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""The members of a JSON object, as `json.loads` returns them."""
