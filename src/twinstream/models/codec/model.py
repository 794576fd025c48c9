"""`Model`, the base class of all records."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import field, fields, frozen

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.codec.settings import Settings


def _no_members() -> JsonObject:
    return {}


@frozen(kw_only=True, repr=False)
class Model(Settings):
    """A record of the JetStream API.

    Records are frozen; `twinstream.models.evolve(record, field=value)` returns a changed copy. A
    field that is None is absent from the JSON text.
    """

    _copier: ClassVar[str] = "twinstream.models.evolve"

    unknown: dict[str, Any] = field(factory=_no_members)
    """JSON members that were null or have no field. Encoding writes them unchanged."""

    def __repr__(self) -> str:
        """Return the class name and the fields that are not None, because most fields are None."""
        pairs = [(each.name, getattr(self, each.name)) for each in fields(type(self))]
        shown = [f"{name}={value!r}" for name, value in pairs if _is_set(name, value)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_set(name: str, value: object) -> bool:
    return bool(value) if name == "unknown" else value is not None
