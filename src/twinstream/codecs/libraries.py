"""Which library a type belongs to, without importing that library."""

from __future__ import annotations

import sys
from typing import Any, get_args, get_origin

__all__ = ["has_part", "is_cloud_event", "is_pydantic", "is_struct", "own_json"]


def is_struct(model: object) -> bool:
    """Return whether a type is a struct of msgspec."""
    return _is_subclass(model, "msgspec", "Struct")


def is_pydantic(model: object) -> bool:
    """Return whether a type is a model of pydantic."""
    return _is_subclass(model, "pydantic", "BaseModel")


def is_cloud_event(model: object) -> bool:
    """Return whether a type is `CloudEvent`, with or without the type of its data."""
    return _is_subclass(get_origin(model) or model, "twinstream.codecs.cloud_event", "CloudEvent")


def own_json(model: object) -> bool:
    """Return whether a class reads and writes its own JSON, as the models of pydantic do."""
    return isinstance(model, type) and hasattr(model, "model_validate_json")


def _is_subclass(model: object, module: str, name: str) -> bool:
    # A type of a library that is not loaded cannot exist.
    loaded = sys.modules.get(module)
    base = None if loaded is None else getattr(loaded, name, None)
    return base is not None and isinstance(model, type) and issubclass(model, base)


def has_part(model: Any, is_wanted: Any) -> bool:
    """Return whether `is_wanted` is true for a type or for one of its type arguments."""
    return is_wanted(model) or any(has_part(each, is_wanted) for each in get_args(model))
