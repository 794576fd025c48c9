"""Durations and sizes with units in YAML files, such as `max_age: 7d` and `max_bytes: 1GB`.

JSON files have the form of requests, in which servers accept only numbers.
"""

from __future__ import annotations

from typing import Any, Final, cast

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.files.shapes import SHAPES
from twinstream.models.units import parse_duration, parse_size

SIZES: Final = frozenset({"max_bytes", "max_msg_size", "max_value_size"})
"""The settings that are numbers of bytes."""


def in_numbers(members: JsonObject, record: str) -> JsonObject:
    """Return the settings of a record, with numbers in place of durations and sizes with units.

    Other values are kept, so that the validation reports them.
    """
    shape = SHAPES[record]
    return {
        name: _in_number(name, value, shape[name][0]) if name in shape else value
        for name, value in members.items()
    }


def _in_number(name: str, value: Any, kind: str) -> Any:
    """Return a setting with texts such as `2h` or `1 GiB` replaced by numbers, also within it.

    `kind` is the setting's type in `SHAPES`. A text that is not a quantity stays unchanged.
    """
    if isinstance(value, list) and kind.startswith("["):
        return [_in_number(name, item, kind[1:-1]) for item in cast("list[object]", value)]
    if isinstance(value, dict) and kind in SHAPES:
        return in_numbers(cast("JsonObject", value), kind)
    if not isinstance(value, str):
        return cast("object", value)
    number = None
    if kind == "duration":
        number = parse_duration(value)
    elif name in SIZES:
        number = parse_size(value)
    return value if number is None else number
