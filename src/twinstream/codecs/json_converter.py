"""The converter of `JsonCodec`, which imports cattrs."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final, cast, get_args, get_origin
from uuid import UUID

from twinstream.codecs.type_name import type_name
from twinstream.errors import BadArgument

__all__ = ["explained", "hooks_of"]

Hook = Callable[..., Any]

# What counts as each plain type. A boolean is no number, although Python's `bool` is an `int`.
_EXACT: Final[dict[type, tuple[type, ...]]] = {
    str: (str,),
    int: (int,),
    float: (float, int),
    bool: (bool,),
}


def hooks_of(model: Any) -> tuple[Hook, Hook]:
    """Return the functions `structure(plain, model)` and `unstructure(value)` of a type.

    Raises `BadArgument` if cattrs has none.
    """
    converter = _converter()
    try:
        structure = converter.get_structure_hook(model)
        unstructure = converter.get_unstructure_hook(model)
    except Exception as error:
        raise BadArgument(f"JsonCodec cannot encode {type_name(model)}: {error}") from error
    return structure, unstructure


@cache
def _converter() -> Any:
    """Return the converter of cattrs, which accepts only exact JSON types.

    Without these hooks, cattrs would convert the text "1" to a number, and numbers to texts.
    """
    try:
        from cattrs.preconf.json import make_converter
    except ImportError as error:
        raise BadArgument(
            "JsonCodec needs cattrs: install Twinstream with its extra payloads (in a clone: pip"
            " install '.[payloads]'), or use MsgspecCodec"
        ) from error
    converter: Any = make_converter()
    for kind in _EXACT:
        converter.register_structure_hook(kind, _exact)
    for kind in (UUID, Decimal):
        converter.register_structure_hook(kind, _from_text)
        converter.register_unstructure_hook(kind, str)

    converter.register_structure_hook_factory(_has_number_keys, partial(_by_number, converter))
    return converter


def _by_number(converter: Any, model: Any) -> Hook:
    """Return the hook of a dictionary whose keys are numbers, which are names in JSON."""
    named: Any = dict
    named = named[str, get_args(model)[1]]
    inner = converter.get_structure_hook(named)

    def structure(plain: Any, _: Any) -> Any:
        return {_number(key): value for key, value in inner(plain, named).items()}

    return structure


def _exact(plain: Any, kind: type) -> Any:
    """Return a plain value. Raises `ValueError` if it is of another type."""
    if type(plain) in _EXACT[kind]:
        return float(plain) if kind is float else plain
    raise ValueError(f"got {type(plain).__name__}")


def _from_text(plain: Any, kind: type) -> Any:
    if not isinstance(plain, str):
        raise ValueError(f"got {type(plain).__name__}")
    try:
        return kind(plain)
    except ArithmeticError as error:
        raise ValueError(f"{plain!r:.40} is no {kind.__name__}") from error


def _has_number_keys(model: Any) -> bool:
    return get_origin(model) is dict and get_args(model)[0] is int


def _number(key: str) -> int:
    found = int(key)
    if str(found) != key:
        # Two names of the object could otherwise become one key.
        raise ValueError(f"{key!r:.40} is not the name of an int")
    return found


def explained(error: Exception) -> tuple[str, str]:
    """Return the path of the first value that does not fit, and what is wrong with it."""
    if not isinstance(error, ExceptionGroup):
        return "", _reason(error, None)
    from cattrs import transform_error

    texts = transform_error(cast("Any", error), format_exception=_reason)
    reason, _, path = texts[0].rpartition(" @ ")
    more = len(texts) - 1
    return path, reason + (f" (and {more} more errors)" if more else "")


def _reason(error: BaseException, kind: Any) -> str:
    """Return what an error of cattrs says about a value of the type `kind`."""
    from cattrs.errors import ForbiddenExtraKeysError

    if isinstance(error, KeyError):
        return f"required member {error} is missing"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"unknown members {sorted(error.extra_fields)}"
    text = str(error) or type(error).__name__
    if kind is None:
        return f"{type(error).__name__}: {text}"
    return f"invalid value for {type_name(kind)}: {text}"
