"""The differences between a configuration and the settings that a command line gives."""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.cli.value_text import as_text
from twinstream.models import Model


def changes_of(old: Model, fields: Mapping[str, object]) -> list[str]:
    """Return a line for each setting that would change: its name, the old and the new value."""
    pairs = {name: (_shown(getattr(old, name)), _shown(value)) for name, value in fields.items()}
    return [f"{name}: {old} → {new}" for name, (old, new) in pairs.items() if old != new]


def _shown(value: object) -> str:
    return as_text(value) or "not set"
