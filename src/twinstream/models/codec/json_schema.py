"""The specification of the API as one JSON Schema document (2020-12), for validators and editors.

The document describes config files; `$defs` contains every type of the API. Each member of a type
has its default, its unit (`x-unit`) and the first server version that knows it (`x-since`).
"""

from __future__ import annotations

import difflib
import json
from importlib.resources import files
from typing import Any, cast

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.units import DURATION_PATTERN, SIZE_PATTERN

STRICT = "strict."
"""The name prefix of copies of types that refuse unknown members, for config files."""

_REF = "#/$defs/"


def json_schema(name: str | None = None, *, plain: bool = False) -> JsonObject:
    """Return the JSON Schema document, or the part for one type.

    Configs and requests do not allow unknown members, so that validators find misspelt names.
    Responses and events allow them, because newer servers send more members.

    Args:
        name: A type, such as `StreamConfig`; the result includes all types that it refers to. None
            means the whole document.
        plain: Omit the keywords that begin with `x-`, which some validators refuse.

    Raises:
        ValueError: The document has no type of this name.
    """
    text = files("twinstream.models").joinpath("schema.json").read_text("utf-8")
    document: JsonObject = json.loads(text)
    if name is None:
        _allow_units(document)
    else:
        document = _schema_of_type(document, name)
    return cast("JsonObject", _plain(document)) if plain else document


def _allow_units(document: JsonObject) -> None:
    """Allow durations and sizes with units in the types of config files, as YAML files may have."""
    for name, definition in cast("JsonObject", document["$defs"]).items():
        if name.startswith(STRICT):
            for member in definition.get("properties", {}).values():
                _allow_units_in(member)


def _allow_units_in(member: JsonObject) -> None:
    """Let a number of nanoseconds or bytes also be a text with a unit, such as `2h`."""
    is_duration = member.get("$ref") == _REF + "Nanoseconds"
    if "items" in member:
        _allow_units_in(member["items"])
    elif is_duration or ("$ref" in member and member.get("x-unit") == "bytes"):
        pattern = DURATION_PATTERN if is_duration else SIZE_PATTERN
        text = {"type": "string", "pattern": pattern}
        member["anyOf"] = [{"$ref": member.pop("$ref")}, text]


def schema_names() -> list[str]:
    """Return the names of the types that the document describes, sorted."""
    return sorted(name for name in json_schema()["$defs"] if not name.startswith(STRICT))


def _schema_of_type(document: JsonObject, name: str) -> JsonObject:
    """Return the schema of one type, with only the definitions that it refers to.

    Raises `ValueError` if there is no type with this name.
    """
    definitions = cast("JsonObject", document["$defs"])
    if name not in definitions:
        close = difflib.get_close_matches(name, [key for key in definitions if "." not in key])
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown type {name!r}{hint}")
    root = STRICT + name if STRICT + name in definitions else name
    needed = _reached(definitions, root)
    return {
        "$schema": document["$schema"],
        "title": name,
        "$ref": _REF + root,
        "$defs": {key: value for key, value in definitions.items() if key in needed},
    }


def _reached(definitions: JsonObject, root: str) -> set[str]:
    """Return `root` and the names of all types that it refers to, directly or indirectly."""
    reached: set[str] = set()
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _references(definitions[name])
    return reached


def _references(value: Any) -> list[str]:
    """Return the names of all definitions to which a part of a schema refers."""
    if isinstance(value, list):
        return [name for item in cast("list[object]", value) for name in _references(item)]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    for key, item in cast("JsonObject", value).items():
        if key == "$ref" and isinstance(item, str):
            found.append(item.removeprefix(_REF))
        else:
            found += _references(item)
    return found


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("JsonObject", value)
    return {key: _plain(item) for key, item in members.items() if not key.startswith("x-")}
