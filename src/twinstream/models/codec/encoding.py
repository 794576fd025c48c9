"""Encode records as JSON objects.

Fields that are None are omitted. The members in `Model.unknown` are included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.codec.kinds import Kind, is_enumeration, is_record, kinds_of
from twinstream.models.codec.model import Model
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp

__all__ = ["write_record"]

Write: TypeAlias = Callable[[Any], object]

# The encoder of each field, by class and field name; None if values are written unchanged.
_WRITERS: dict[type, dict[str, Write | None]] = {}


def write_record(model: Model) -> JsonObject:
    """Return the JSON object of a record.

    Raises `NotAnAttrsClassError` if a field contains another object instead of a record.
    """
    cls = type(model)
    table = _WRITERS.get(cls)
    if table is None:
        table = _WRITERS[cls] = {
            name: _writer(kind) for name, kind in kinds_of(cls).items() if name != "unknown"
        }
    found: JsonObject = {}
    for name, write in table.items():
        value = getattr(model, name)
        if value is not None:
            found[name] = value if write is None else write(value)
    for name, value in model.unknown.items():
        found.setdefault(name, value)
    return found


def _writer(kind: Kind) -> Write | None:
    """Return the function that encodes values of `kind`; None if they are written unchanged."""
    each = _writer(kind.cls) if isinstance(kind.cls, Kind) else _value_writer(kind.cls)
    if kind.form == "list":
        return list if each is None else lambda items: [each(item) for item in items]
    if kind.form == "dict":
        if each is None:
            return dict
        return lambda items: {key: each(value) for key, value in items.items()}
    return each


def _value_writer(cls: Any) -> Write | None:
    if is_record(cls):
        return write_record
    return str.__str__ if is_enumeration(cls) else _VALUES.get(cls)


def _write_bytes(value: bytes) -> str:
    import base64

    return base64.b64encode(value).decode()


_VALUES: dict[Any, Write] = {
    Duration: lambda value: value.ns,
    Timestamp: lambda value: value.rfc3339(),
    bytes: _write_bytes,
}
