"""What a change of a JSON Schema means for the messages that are stored already."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, cast

from attrs import frozen

__all__ = ["SchemaChange", "schema_changes"]

Schema = Mapping[str, Any]

# Keywords that describe a schema and refuse no message.
_NOTES: Final = {
    *("$schema", "$id", "$comment", "$defs", "definitions", "$anchor"),
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
}
# Keywords that this module compares.
_KNOWN: Final = {
    *("type", "enum", "const", "required", "properties", "additionalProperties", "items", "$ref"),
}
_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})
# The longest chain of references to references.
_CHAIN: Final = 40


@frozen
class SchemaChange:
    """A difference between two schemas."""

    kind: Literal["break", "unclear"]
    """`break`: the new schema may refuse messages that the old one accepted; else `unclear`."""

    path: str
    """The place in a payload, such as `$.lines[].price`."""

    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def schema_changes(old: Schema, new: Schema) -> list[SchemaChange]:
    """Return the changes between two schemas of the same payload.

    These are breaks: a required member was added, a type was narrowed, a value of an enumeration
    was removed, `additionalProperties` was closed. Every other difference is unclear. Differences
    of titles, descriptions and examples are none.
    """
    return list(dict.fromkeys(_Comparison(old, new).of("$", old, new)))


class _Comparison:
    """The comparison of two whole schemas, whose references lead into them."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old: Final = old
        self._new: Final = new
        # The pairs that are compared already: schemas may contain themselves.
        self._seen: Final[set[tuple[int, int]]] = set()

    def of(self, path: str, old: Any, new: Any) -> Iterator[SchemaChange]:
        """Yield the changes between two schemas at `path`, and below it.

        A pair that refers to itself is compared once.
        """
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        pair = (id(old), id(new))
        if pair in self._seen or (old == new and not _has_reference(old)):
            return
        self._seen.add(pair)
        if isinstance(old, bool) or isinstance(new, bool):
            yield from _of_booleans(path, old, new)
            return
        yield from _type_changes(path, old, new)
        yield from _value_changes(path, old, new)
        yield from _of_required(path, old, new)
        yield from _other_changes(path, old, new)
        yield from self._property_changes(path, old, new)
        if "items" in old and "items" in new:
            yield from self.of(f"{path}[]", old["items"], new["items"])
        elif "items" in old or "items" in new:
            yield _unclear(path, "items are described in one schema only")

    def _property_changes(self, path: str, old: Schema, new: Schema) -> Iterator[SchemaChange]:
        """Yield the changes of properties, and of whether other properties are allowed."""
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in before.keys() & after.keys():
            yield from self.of(f"{path}.{name}", before[name], after[name])
        for name in sorted(before.keys() - after.keys()):
            yield _unclear(f"{path}.{name}", "is no longer described")
        for name in sorted(after.keys() - before.keys()):
            yield _unclear(f"{path}.{name}", "is described now")
        was, now = (each.get("additionalProperties", True) for each in (old, new))
        if now is False and was is not False:
            yield SchemaChange("break", path, "additionalProperties was closed")
        elif was != now:
            yield _unclear(path, "additionalProperties differs")


def _resolved(whole: Schema, part: Any) -> Any:
    """Return the schema to which a part refers, within the same document."""
    for _ in range(_CHAIN):
        ref = _member(part, "$ref")
        if not isinstance(ref, str) or not ref.startswith("#") or len(part) > 1:
            break
        found: Any = whole
        for token in ref[1:].split("/")[1:]:
            found = _member(found, token.replace("~1", "/").replace("~0", "~"))
        if found is None:
            break
        part = found
    return part


def _member(part: Any, name: str) -> Any:
    return cast("Schema", part).get(name) if isinstance(part, Mapping) else None


def _has_reference(part: Any) -> bool:
    # Equal texts may refer to different definitions.
    return '"$ref"' in json.dumps(part)


def _of_booleans(path: str, old: Any, new: Any) -> Iterator[SchemaChange]:
    if new is False and old is not False:
        yield SchemaChange("break", path, "no value is allowed any more")
    elif old != new:
        yield _unclear(path, "differs")


def _types(schema: Schema) -> frozenset[str]:
    given = schema.get("type")
    if given is None:
        return _TYPES
    found = {given} if isinstance(given, str) else set(given)
    return frozenset(found)


def _type_changes(path: str, old: Schema, new: Schema) -> Iterator[SchemaChange]:
    """Yield the change of the allowed JSON types. Stored messages may have a type that was lost."""
    before, after = _types(old), _types(new)
    if before == after:
        return
    # An integer is a number.
    allowed = after | {"integer"} if "number" in after else after
    lost = before - allowed
    if lost:
        text = f"the type was narrowed from {_shown(before)} to {_shown(after)}"
        yield SchemaChange("break", path, text)
    else:
        yield _unclear(path, f"the type was widened from {_shown(before)} to {_shown(after)}")


def _shown(types: frozenset[str]) -> str:
    return "any" if types == _TYPES else " or ".join(sorted(types))


def _allowed(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return None if values is None else list(values)


def _value_changes(path: str, old: Schema, new: Schema) -> Iterator[SchemaChange]:
    """Yield the change of an enumeration. Stored messages may have the values that it lost."""
    before, after = _allowed(old), _allowed(new)
    if before == after:
        return
    if after is None:
        yield _unclear(path, "an enumeration became free")
    elif before is None:
        yield SchemaChange("break", path, "the values were limited to an enumeration")
    else:
        texts = [json.dumps(each, sort_keys=True) for each in after]
        removed = [
            text for each in before if (text := json.dumps(each, sort_keys=True)) not in texts
        ]
        if removed:
            yield SchemaChange("break", path, f"removed from the enumeration: {', '.join(removed)}")
        else:
            yield _unclear(path, "the enumeration has more values")


def _of_required(path: str, old: Schema, new: Schema) -> Iterator[SchemaChange]:
    before, after = set(old.get("required", ())), set(new.get("required", ()))
    for name in sorted(after - before):
        yield SchemaChange("break", f"{path}.{name}", "is required now")
    for name in sorted(before - after):
        yield _unclear(f"{path}.{name}", "is no longer required")


def _other_changes(path: str, old: Schema, new: Schema) -> Iterator[SchemaChange]:
    """Yield the keywords that differ, or have references, and whose effect is not compared."""
    for name in sorted((old.keys() | new.keys()) - _NOTES - _KNOWN):
        if old.get(name) != new.get(name):
            yield _unclear(path, f"{name} differs")
        elif _has_reference(old.get(name)):
            yield _unclear(path, f"{name} has references, which are not compared")
    if old.get("$ref") != new.get("$ref"):
        yield _unclear(path, "$ref differs")


def _unclear(path: str, text: str) -> SchemaChange:
    return SchemaChange("unclear", path, text)
