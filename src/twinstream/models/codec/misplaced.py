"""Find fields that must contain a record but contain another value.

Used only after encoding failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from attrs import fields_dict

from twinstream.models.codec.kinds import is_record, kinds_of
from twinstream.models.codec.model import Model

__all__ = ["misplaced"]


def misplaced(model: Model) -> str:
    """Return a message that lists the fields that must contain a record but do not."""
    return "; ".join(_misplaced_in(model, type(model).__name__))


def _misplaced_in(model: Model, path: str) -> Iterator[str]:
    """Describe each value in `model`, or in a record within it, that should be a record."""
    for name, kind in kinds_of(type(model)).items():
        value = getattr(model, name)
        if name == "unknown" or value is None:
            continue
        if not is_record(kind.cls):
            continue
        several = isinstance(value, list | tuple)
        items = cast("Iterable[Any]", value) if several else [value]
        for number, item in enumerate(items):
            place = f"{path}.{name}" + (f"[{number}]" if several else "")
            if isinstance(item, Model):
                yield from _misplaced_in(item, place)
            else:
                yield _described(place, kind.cls, item)


def _described(place: str, wanted: type[Model], value: object) -> str:
    """Describe a value that should be a record, and what to write instead."""
    name = wanted.__name__
    text = f"{place}: expected a {name}, got {value!r}"
    if isinstance(value, dict):
        return f"{text}; write decode({value!r}, {name})"
    if isinstance(value, str) and "name" in fields_dict(wanted):
        return f"{text}; write {name}(name={value!r})"
    return text
