"""The spec as one JSON Schema document (2020-12), for validators and editors.

The document describes a file of configs; below ``$defs`` it has every type of the API. Members
carry units (``x-unit``), the first server that knows them (``x-since``) and defaults.
"""

from __future__ import annotations

import difflib
import json
from importlib.resources import files
from typing import Any, cast

from twinstream.models._json import JsonObject

STRICT = "strict."
"""Prefix of the copies of types that people write, in which a misspelt member is an error."""

_REF = "#/$defs/"


def json_schema(name: str | None = None, *, plain: bool = False) -> JsonObject:
    """Return the whole document, or one for the type ``name`` with what it refers to.

    Configs and requests are closed, so that misspelt members are found; answers and events are
    open, since newer servers send more. ``plain`` leaves out the keywords that begin with ``x-``,
    which some validators refuse. Raises ``ValueError`` for an unknown name.
    """
    text = files("twinstream.models").joinpath("schema.json").read_text("utf-8")
    document: JsonObject = json.loads(text)
    if name is not None:
        document = _of_type(document, name)
    return cast("JsonObject", _plain(document)) if plain else document


def schema_names() -> list[str]:
    """Return the names of the types that the document describes, sorted."""
    return sorted(name for name in json_schema()["$defs"] if not name.startswith(STRICT))


def _of_type(document: JsonObject, name: str) -> JsonObject:
    definitions = cast("JsonObject", document["$defs"])
    if name not in definitions:
        close = difflib.get_close_matches(name, [key for key in definitions if "." not in key])
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no type {name!r}{hint}")
    root = STRICT + name if STRICT + name in definitions else name
    needed = _reached(definitions, root)
    return {
        "$schema": document["$schema"],
        "title": name,
        "$ref": _REF + root,
        "$defs": {key: value for key, value in definitions.items() if key in needed},
    }


def _reached(definitions: JsonObject, root: str) -> set[str]:
    """Return the names that ``root`` refers to, directly or through others, and its own."""
    reached: set[str] = set()
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _references(definitions[name])
    return reached


def _references(value: Any) -> list[str]:
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
