"""Checks of arguments, which raise an error in the call that passes the argument."""

from __future__ import annotations

from types import UnionType
from typing import Final

from attrs import fields_dict

import twinstream.models
from twinstream.errors import BadArgument
from twinstream.models.codec.model import Model

__all__ = ["check_config", "check_kind", "check_whole"]

# The settings that name an object, of which each configuration has at most one.
_NAMES: Final = ("durable_name", "name", "bucket")


def check_config(config: object, kind: type[Model]) -> None:
    """Raise `BadArgument` if `config`, for example a dictionary, is not an instance of `kind`.

    Raises `TypeError` if one of its fields contains another value instead of a record.
    """
    if isinstance(config, kind):
        twinstream.models.encode(config)
        return
    name, got = kind.__name__, type(config)
    # nats-py has classes of the same names. For such a class, the error names the module.
    which = f"that of {got.__module__}" if got.__name__ == name else got.__name__
    article = "an" if name[0] in "AEIO" else "a"
    own = next((each for each in _NAMES if each in fields_dict(kind)), None)
    if isinstance(config, str) and own is not None:
        raise BadArgument(f"{article} {name} is expected, got str: pass {name}({own}={config!r})")
    raise BadArgument(
        f"{article} {name} is expected, got {which}; for a dictionary as the server writes it, or"
        f" as nats-py's as_dict() returns it, use twinstream.models.decode(given, {name})"
    )


def check_kind(value: object, kind: type | UnionType, name: str, instead: str) -> None:
    """Raise `BadArgument` unless `value` is of type `kind`; `instead` describes this type."""
    if not isinstance(value, kind):
        raise BadArgument(f"{name} must be {instead}, got {value!r}")


def check_whole(value: object, name: str, least: int = 1) -> int:
    """Return `value`; raises `BadArgument` unless it is an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadArgument(f"{name} must be a whole number from {least} up, got {value!r}")
    return value
