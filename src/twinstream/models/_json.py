"""What a JSON object is in signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""Members of a JSON object, as ``json.loads`` gives them."""
