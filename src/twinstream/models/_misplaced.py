"""Finds values that stand where a record should; asked only after encoding failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast, get_args, get_type_hints

from attrs import fields

from twinstream.models._model import Model

__all__ = ["misplaced"]


def misplaced(model: Model) -> str:
    """Name the places of a record that should hold a record and hold something else."""
    return "; ".join(_look(model, type(model).__name__))


def _look(model: Model, path: str) -> Iterator[str]:
    hints = get_type_hints(type(model))
    for each in fields(type(model)):
        wanted = _record_of(hints[each.name])
        value = getattr(model, each.name)
        if wanted is None or value is None:
            continue
        several = isinstance(value, list | tuple)
        items = cast("Iterable[Any]", value) if several else [value]
        for number, item in enumerate(items):
            place = f"{path}.{each.name}" + (f"[{number}]" if several else "")
            if isinstance(item, Model):
                yield from _look(item, place)
            else:
                yield _told(place, wanted, item)


def _told(place: str, wanted: type[Model], value: object) -> str:
    name = wanted.__name__
    text = f"{place}: expected a {name}, got {value!r}"
    return f"{text}; write decode({value!r}, {name})" if isinstance(value, dict) else text


def _record_of(hint: Any) -> type[Model] | None:
    """Return the record in a hint such as ``list[StreamSource] | None``."""
    if isinstance(hint, type) and issubclass(hint, Model):
        return hint
    return next((found for found in map(_record_of, get_args(hint)) if found is not None), None)
