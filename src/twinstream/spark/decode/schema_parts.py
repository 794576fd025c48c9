"""Merge the parts of a JSON Schema that apply to one value: keywords, `$ref` and `allOf`.

A value must satisfy all of these parts, so their keywords are combined. The result has the members
and the required names of all parts, and the narrowest types and bounds. `anyOf` and `oneOf` list
alternatives, which are not merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import UnionType
from typing import Final, TypeAlias, cast

from attrs import frozen

from twinstream.spark.errors import SchemaError

__all__ = [
    "Parts",
    "Resolver",
    "Schema",
    "combined",
    "members_in",
    "names_in",
    "parts_of",
    "types_in",
]

Schema: TypeAlias = Mapping[str, object]
Resolver: TypeAlias = Callable[[str], Schema]
"""A function that returns the schema that a `$ref` names."""

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_APART: Final = frozenset({"$ref", "allOf", *_ALTERNATIVES})
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")


@frozen
class Parts:
    """The merged parts of the schema of one value.

    `words` has the keywords, `choices` has the lists of alternatives, and `refs` has the
    references that were resolved. `is_false` means that one of the parts is the schema `false`,
    which no value satisfies.
    """

    words: Schema
    choices: tuple[Sequence[object], ...]
    refs: tuple[str, ...]
    is_false: bool


def parts_of(
    schema: object, resolve: Resolver, within: Collection[str], where: str
) -> Parts | None:
    """Merge a schema with the schemas of its `$ref` and `allOf`.

    If two values of a keyword cannot be combined, the value of `schema` takes precedence over
    the value of a merged schema. `within` has the references of the schemas that contain this
    schema. Returns `None` if the schema refers to one of them, because its type is recursive.
    """
    words: Schema = {}
    choices: list[Sequence[object]] = []
    refs: list[str] = []
    is_false = False
    pending = [schema]
    while pending:
        node = pending.pop(0)
        is_false |= node is False
        if not isinstance(node, Mapping):
            continue  # true, or another schema without constraints
        node = cast(Schema, node)
        after = list(_list(node, "allOf", where))
        ref = _ref(node, where)
        if ref in within:
            return None
        if ref is not None and ref not in refs:
            refs.append(ref)
            after.insert(0, resolve(ref))
        choices += [_list(node, word, where) for word in _ALTERNATIVES if word in node]
        words = combined(words, {key: node[key] for key in node if key not in _APART}, where)
        pending[:0] = after
    return Parts(words, tuple(choices), tuple(refs), is_false)


def _ref(node: Schema, where: str) -> str | None:
    for word in _DYNAMIC:
        if word in node:
            raise SchemaError(f"{where}: {word} is not supported; use $ref")
    ref = node.get("$ref")
    if ref is not None and not isinstance(ref, str):
        raise SchemaError(f"{where}: $ref takes text, not {ref!r}")
    return ref


def _list(node: Schema, word: str, where: str) -> list[object]:
    found = node.get(word, [])
    if not isinstance(found, list):
        raise SchemaError(f"{where}: {word} takes a list")
    return cast(list[object], found)


def combined(first: Schema, second: Schema, where: str) -> Schema:
    """Return the keywords for a value to which both schemas apply.

    If two values of a keyword cannot be combined, the result has the first value.
    """
    found = dict(first)
    for word, value in second.items():
        found[word] = _combined_value(word, found[word], value, where) if word in found else value
    return found


def _combined_value(word: str, first: object, second: object, where: str) -> object:
    """Return the value of a keyword that allows what both values allow.

    If the two values cannot be combined, return the first one.
    """
    match word:
        case "type":
            return _common_types(types_in(first, where), types_in(second, where))
        case "required":
            return [*names_in(first, where), *names_in(second, where)]
        case "properties" | "patternProperties":
            return _united_members(first, second, where)
        case "items" | "additionalProperties":
            return False if first is False or second is False else {"allOf": [first, second]}
        case "minimum" | "exclusiveMinimum" | "multipleOf":
            return max(first, second) if _all_are(int | float, first, second) else first  # type: ignore[call-overload]
        case "maximum" | "exclusiveMaximum":
            return min(first, second) if _all_are(int | float, first, second) else first  # type: ignore[call-overload]
        case "enum" if _all_are(list, first, second):
            others = cast(list[object], second)
            return [each for each in cast(list[object], first) if each in others]
        case _:
            return first


def _all_are(kind: type | UnionType, *values: object) -> bool:
    return all(isinstance(each, kind) for each in values)


def _united_members(first: object, second: object, where: str) -> Schema:
    found = dict(members_in(first, where))
    for name, schema in members_in(second, where).items():
        found[name] = {"allOf": [found[name], schema]} if name in found else schema
    return found


def _common_types(first: frozenset[str], second: frozenset[str]) -> list[str]:
    both = first & second
    for one, other in ((first, second), (second, first)):
        if "integer" in one and "number" in other:
            both |= {"integer"}
    return sorted(both)


def members_in(value: object, where: str) -> Schema:
    """Return `value` as a mapping of member names to schemas.

    Raises `SchemaError` if `value` is not an object.
    """
    if not isinstance(value, Mapping):
        raise SchemaError(f"{where}: properties takes an object, a schema for each name")
    return cast(Schema, value)


def names_in(value: object, where: str) -> list[str]:
    """Return `value` as a list of names. Raises `SchemaError` for any other value."""
    names = cast(list[object], value) if isinstance(value, list) else [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in names):
        raise SchemaError(f"{where}: required takes a list of names, not {value!r}")
    return cast(list[str], names)


def types_in(value: object, where: str) -> frozenset[str]:
    """Return the names of types in `value`, which is one name or a list of names.

    Raises `SchemaError` for an unknown name.
    """
    names = cast(list[object], value) if isinstance(value, list) else [value]
    for name in names:
        if name not in _TYPES:
            raise SchemaError(f"{where}: {name!r} is no type; the types are {', '.join(_TYPES)}")
    return frozenset(cast(list[str], names))
