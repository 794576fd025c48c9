"""`Model`, the base class of all records."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.codec.records import field, frozen, members


def _no_members() -> JsonObject:
    return {}


@frozen(kw_only=True, repr=False)
class Model:
    """A record of the JetStream API.

    Records are frozen; `twinstream.models.evolve(record, field=value)` returns a changed copy. A
    field that is None is absent from the JSON text.
    """

    unknown: dict[str, Any] = field(factory=_no_members)
    """JSON members that were null or have no field. Encoding writes them unchanged."""

    @classmethod
    def __wrap_init__(cls, init: Callable[..., None]) -> Callable[..., None]:
        """Return a constructor with better errors.

        Errors of converters start with the field's name, and errors of unknown arguments suggest a
        name.
        """
        return _naming(cls, init)

    def __repr__(self) -> str:
        """Return the class name and the fields that are not None, because most fields are None."""
        pairs = [(name, getattr(self, name)) for name in members(type(self))]
        shown = [f"{name}={value!r}" for name, value in pairs if _is_set(name, value)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _naming(cls: type[Model], init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def with_field_name(self: Model, *values: Any, **named: Any) -> None:
        try:
            init(self, *values, **named)
        except (TypeError, ValueError) as error:
            name = _refusing(cls, named)
            if name is None:
                advice = _advice(cls, values, named)
                if not advice:
                    raise
                # Python 3.13 suggests a name itself, but knows no names of equal meaning.
                text = str(error).partition(". Did you mean")[0]
                raise TypeError(f"{text}; {advice}") from None
            raise type(error)(f"{cls.__name__}.{name}: {error}") from None

    return with_field_name


def _advice(cls: type[Model], values: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Return what to correct in the arguments of a constructor, or "" if they are accepted."""
    from twinstream.models.names.near_names import name_advice

    if values:
        return "the fields are keyword arguments"
    known = members(cls)
    return name_advice((name for name in named if name not in known), known)


def _refusing(cls: type[Model], named: dict[str, Any]) -> str | None:
    """Return the name of the first field whose converter refuses its value.

    The error that the converter raised does not contain the name.
    """
    for name, member in members(cls).items():
        if name in named and member.converter is not None:
            try:
                member.converter(named[name])
            except (TypeError, ValueError):
                return name
    return None


def _is_set(name: str, value: object) -> bool:
    return bool(value) if name == "unknown" else value is not None
