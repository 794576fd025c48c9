"""The names of types in errors."""

from __future__ import annotations

from typing import Any

__all__ = ["type_name"]


def type_name(model: Any) -> str:
    """Return a short name of a type, such as `Order` or `list[Order]`."""
    arguments = getattr(model, "__args__", None)
    if isinstance(model, type) and not arguments:
        return model.__name__
    origin = getattr(model, "__origin__", None)
    if origin is not None and arguments:
        # `Annotated` has the annotated type as its origin.
        if getattr(model, "__metadata__", None):
            return type_name(origin)
        return f"{type_name(origin)}[{', '.join(type_name(each) for each in arguments)}]"
    return str(model)
