"""What all records have in common."""

from __future__ import annotations

from typing import Any

from attrs import field, fields, frozen

from js_models._json import JsonObject


def _no_members() -> JsonObject:
    return {}


@frozen(kw_only=True, repr=False)
class Model:
    """A record of the JetStream API.

    Frozen: ``js_models.evolve(record, field=value)`` makes a changed copy. A field that is None
    is absent from the JSON text.
    """

    unknown: dict[str, Any] = field(factory=_no_members)
    """Members without a field of their own, and members that came as null; written back."""

    def __repr__(self) -> str:
        """Show what is set; most of a config's fields are not."""
        pairs = [(item.name, getattr(self, item.name)) for item in fields(type(self))]
        shown = [f"{name}={value!r}" for name, value in pairs if _is_set(name, value)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_set(name: str, value: object) -> bool:
    return bool(value) if name == "unknown" else value is not None
