"""What all records have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from attrs import field, fields, frozen

from twinstream.models._json import JsonObject


def _no_members() -> JsonObject:
    return {}


@frozen(kw_only=True, repr=False)
class Model:
    """A record of the JetStream API.

    Frozen: ``twinstream.models.evolve(record, field=value)`` makes a changed copy. A field that is None
    is absent from the JSON text.
    """

    unknown: dict[str, Any] = field(factory=_no_members)
    """Members without a field of their own, and members that came as null; written back."""

    def __init_subclass__(cls) -> None:
        """Let errors of the constructor say which field they are about."""
        # attrs makes a second class of each, which has these.
        init, items = (vars(cls).get(name) for name in ("__init__", "__attrs_attrs__"))
        if init and any(item.converter for item in items or ()):
            setattr(cls, "__init__", _naming(cls, init))  # noqa: B010

    def __repr__(self) -> str:
        """Show what is set; most of a config's fields are not."""
        pairs = [(item.name, getattr(self, item.name)) for item in fields(type(self))]
        shown = [f"{name}={value!r}" for name, value in pairs if _is_set(name, value)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _naming(cls: type[Model], init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def told(self: Model, *values: Any, **named: Any) -> None:
        try:
            init(self, *values, **named)
        except (TypeError, ValueError) as error:
            name = _refusing(cls, named)
            if name is None:
                raise
            raise type(error)(f"{cls.__name__}.{name}: {error}") from None

    return told


def _refusing(cls: type[Model], named: dict[str, Any]) -> str | None:
    """Return the field whose converter refuses its value, as attrs does not say it."""
    for item in fields(cls):
        name: str = item.name
        if name in named and item.converter is not None:
            try:
                item.converter(named[name])
            except (TypeError, ValueError):
                return name
    return None


def _is_set(name: str, value: object) -> bool:
    return bool(value) if name == "unknown" else value is not None
