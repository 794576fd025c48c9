"""The recorded responses and events, for tests."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from twinstream.models import Model, PublishResponse, decode

FOLDER = Path(__file__).parent / "golden"
NEWEST = "2.15.1"


def paths() -> list[Path]:
    """Return all golden files."""
    return sorted(FOLDER.rglob("*.json"))


@cache
def load(path: Path) -> Any:
    """Return the content of a golden file."""
    return json.loads(path.read_text())


def read(members: dict[str, Any]) -> Model:
    """Decode a response or event like the SDK."""
    if "type" in members:
        return decode(members)
    return decode(members, PublishResponse)


WORDS = {"retention", "discard", "storage", "compression", "ack_policy", "deliver_policy", "action"}


def strange(value: Any) -> Any:
    """Return `value` with unknown members and values, as a future server might send it."""
    if isinstance(value, list):
        return [strange(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {
        key: f"future-{item}" if key in WORDS and isinstance(item, str) else strange(item)
        for key, item in value.items()
        if key != "metadata"
    }
    free = {"metadata": value["metadata"]} if "metadata" in value else {}
    is_map = all(isinstance(item, int) for item in value.values()) and "seq" not in value
    extra = {} if is_map else {"new_thing": {"x": [1, None]}, "new_null": None}
    return {**changed, **free, **extra}
