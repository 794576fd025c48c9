"""`evolve`: copy a frozen record with other values in some fields."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import attrs

from twinstream.models.codec.model import Model

M = TypeVar("M", bound=Model)


def evolve(model: M, **changes: object) -> M:
    """Return a copy of `model` with other values in some fields.

    Members that this release does not know are kept. A field set to None becomes absent. Raises
    `TypeError` for a name that is not a field.

    Args:
        model: The record.
        changes: New values of fields, by their names.
    """
    kept = {name: value for name, value in model.unknown.items() if name not in changes}
    return attrs.evolve(model, **cast("dict[str, Any]", {"unknown": kept, **changes}))
