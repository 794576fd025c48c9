"""`Settings`, the base class of the frozen attrs classes that applications create."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar

from attrs import NOTHING, fields, frozen
from attrs.exceptions import FrozenInstanceError

__all__ = ["Settings"]


@frozen
class Settings:
    """A frozen attrs class whose errors name what to write instead.

    The error for an unknown argument suggests a name, the error of a converter starts with the name
    of its field, and the error for a changed field names the function that returns a changed copy.
    """

    # The function that returns a changed copy.
    _copier: ClassVar[str] = "attrs.evolve"

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        """Replace the methods of a new subclass whose errors say too little."""
        required = [each for each in fields(cls) if each.init and each.default is NOTHING]
        # The server, not the application, supplies objects with several required fields. Their
        # constructor needs no advice, and is faster without.
        init = cls.__init__ if len(required) > 1 else _explained(cls.__init__)
        replaced = {"__init__": init, "__setattr__": _no_setting, "__delattr__": _no_deleting}
        for name, method in replaced.items():
            setattr(cls, name, method)


def _explained(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that explains the errors of `init`."""

    @wraps(init)
    def explained(self: Settings, *values: Any, **named: Any) -> None:
        """Call `init`, and raise its `TypeError` or `ValueError` with advice or a field name."""
        try:
            init(self, *values, **named)
        except (TypeError, ValueError) as error:
            if type(error) not in (TypeError, ValueError):
                raise  # a subclass is an error of this project, which names the field itself
            cls = type(self)
            # A wrong name comes first: the constructor has refused it before any value.
            advice = _advice(cls, values, named)
            if not advice:
                name = _refused(cls, named)
                if name is None:
                    raise
                raise type(error)(f"{cls.__name__}.{name}: {error}") from None
            # Python 3.13 suggests a name itself, but knows no names of equal meaning.
            text = str(error).partition(". Did you mean")[0]
            raise TypeError(f"{text}; {advice}") from None

    return explained


def _refused(cls: type[Settings], named: Mapping[str, Any]) -> str | None:
    """Return the name of the first field whose converter refuses its value.

    The error that the converter raised does not contain the name.
    """
    for each in fields(cls):
        name: str = each.alias
        if name in named and each.converter is not None:
            try:
                each.converter(named[name])
            except (TypeError, ValueError):
                return name
    return None


def _advice(cls: type[Settings], values: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Return what to correct in the arguments of a constructor, or "" if they are accepted."""
    from twinstream.models.names.near_names import name_advice

    given = [each for each in fields(cls) if each.init]
    if values and all(each.kw_only for each in given):
        return "the fields are keyword arguments"
    known = [each.alias for each in given]
    return name_advice((name for name in named if name not in known), known)


def _no_setting(self: Settings, name: str, value: object) -> None:
    raise _frozen_error(self, name, "set", f"{name}=...")


def _no_deleting(self: Settings, name: str) -> None:
    raise _frozen_error(self, name, "delete", f"{name}=None")


def _frozen_error(self: Settings, name: str, what: str, change: str) -> AttributeError:
    text = f"can't {what} attribute {name!r}: a {type(self).__name__} is frozen"
    if any(each.name == name for each in fields(type(self))):
        text += f"; {self._copier}(record, {change}) returns a changed copy"
    # The constructor of attrs has a fixed text.
    error = FrozenInstanceError()
    error.args, error.msg = (text,), text
    return error
