"""Convert a JSON Schema to columns.

Objects with named members become structs, objects of one value type become maps, and values without
a fixed shape are kept as JSON text. The bounds and the format of a number determine its type.
Unsigned 64-bit numbers are `bigint`, so a message with a value above 2**63 - 1 does not match.
With the option `uint64=decimal` they are `decimal(20,0)`. Every member is a nullable column;
the decoder checks whether required members are present. A value with alternatives gets a type that
accepts the values of all alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote

import pyarrow as pa

from twinstream.core.wire.response import read_json
from twinstream.models.files.bounded_read import read_small_text
from twinstream.spark.decode import fields
from twinstream.spark.decode.schema_parts import (
    Parts,
    Resolver,
    Schema,
    combined,
    members_in,
    names_in,
    parts_of,
    types_in,
)
from twinstream.spark.decode.type_union import ANYTHING, NOTHING, ONLY_NULL, Typed, common, member
from twinstream.spark.errors import SchemaError

__all__ = [
    "Resolver",
    "Uint64",
    "is_schema_text",
    "load_schema",
    "schema_text",
    "struct_of",
]

Uint64: TypeAlias = Literal["long", "decimal"]

_INT32: Final = (-(2**31), 2**31 - 1)
# The types of strings by the keyword `format`.
_TEXTS: Final[Mapping[str, pa.DataType]] = {"date-time": fields.TIMESTAMP, "date": fields.DATE}
_INT64_MAX: Final = 2**63 - 1

_MOST_DIGITS: Final = 38
# If `multipleOf` has at most this many decimal places, the column is a decimal. With more, a
# decimal would have few digits left before the decimal point.
_FINEST: Final = 18
# The maximum number of combinations of alternatives in a schema.
_MOST_ALTERNATIVES: Final = 10_000


def load_schema(text: str, where: str = "the JSON Schema") -> Schema:
    """Return the parsed JSON Schema; `where` is its name in errors.

    Raises `SchemaError` if the text is no JSON object.
    """
    try:
        schema = read_json(text)
    except ValueError as error:
        raise SchemaError(f"{where} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"{where} must be an object that describes an object")
    return cast(Schema, schema)


def schema_text(text_or_path: str) -> str:
    """Return the text of a JSON Schema from the text itself or from the path of a file.

    The driver calls this, so executors need no copy of the file. Raises
    `SchemaError` for a file that cannot be read or has no schema.
    """
    if is_schema_text(text_or_path):
        return text_or_path
    where = f"the JSON Schema file {text_or_path!r}"
    try:
        text = read_small_text(text_or_path)
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{where} cannot be read: {error}") from error
    load_schema(text, where)
    return text


def is_schema_text(text_or_path: str) -> bool:
    """Return whether `text_or_path` is the text of a schema, not the path of a file."""
    return text_or_path.lstrip().startswith("{")


def struct_of(
    schema: Schema, *, uint64: Uint64 = "long", resolver: Resolver | None = None
) -> pa.StructType:
    """Return the columns for messages that a JSON Schema describes.

    `uint64` is the type of unsigned 64-bit numbers. `resolver` returns the schema for a
    `$ref`; by default, only references within the document are resolved.

    Raises `SchemaError` if the schema's root has no named members,
    if a `$ref` cannot be resolved, if two member names differ only in case (Spark's names are
    case-insensitive), or if the schema is invalid.
    """
    kind = _Reader(uint64, resolver or _local(schema)).typed(schema, "the schema").kind
    if not isinstance(kind, pa.StructType):
        raise SchemaError(
            "the root of the JSON Schema must be an object with 'properties', so that there are "
            "columns; use valueFormat=raw for other payloads"
        )
    return kind


def _local(root: Schema) -> Resolver:
    """Return a resolver for references within the document `root`.

    Raises `SchemaError` if the document contains another document with references of its own.
    """
    for inner in (each for value in root.values() for each in _schemas(value)):
        own = inner.get("$id")
        if isinstance(own, str) and any(map(_refers_to_itself, _schemas(inner))):
            raise SchemaError(
                f"the JSON Schema contains a document {own!r} whose $ref are relative to its $id:"
                " remove the $id, and write each $ref from the root"
            )

    def resolve(ref: str) -> Schema:
        """Return the schema at a JSON pointer. Raises `SchemaError` if there is none."""
        if ref == "#":
            return root
        if not ref.startswith("#/"):
            raise SchemaError(f"$ref {ref!r} leaves the document; only '#/…' can be resolved")
        found: object = root
        for part in unquote(ref[2:]).split("/"):
            # A JSON pointer writes "/" as "~1" and "~" as "~0".
            found = _inner(found, part.replace("~1", "/").replace("~0", "~"))
        if isinstance(found, bool):
            return {"allOf": [found]}  # the same schema as an object, which a resolver must return
        if not isinstance(found, Mapping):
            raise SchemaError(f"$ref {ref!r} names no schema in the document")
        return cast(Schema, found)

    return resolve


def _schemas(value: object) -> Iterator[Schema]:
    """Yield all objects of a JSON document, at all depths."""
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, Mapping):
            yield cast(Schema, found)
            pending += cast(Schema, found).values()
        elif isinstance(found, list):
            pending += cast(list[object], found)


def _refers_to_itself(schema: Schema) -> bool:
    return str(schema.get("$ref", "")).startswith("#")


def _inner(value: object, part: str) -> object:
    """Return the member or item of `value` that one step of a JSON pointer names, or `None`."""
    if isinstance(value, Mapping):
        return cast(Schema, value).get(part)
    if isinstance(value, list) and part.isdecimal():
        items = cast(list[object], value)
        return items[int(part)] if int(part) < len(items) else None
    return None


class _Reader:
    """A conversion of a schema to types, which recurses from a value to the values inside it."""

    def __init__(self, uint64: Uint64, resolve: Resolver) -> None:
        self._uint64 = uint64
        self._resolve = resolve
        self._open: list[str] = []
        self._alternatives = 0

    def typed(self, schema: object, where: str) -> Typed:
        """Return the type of the values that a schema describes."""
        return self._described(schema, where)[0]

    def _described(self, schema: object, where: str) -> tuple[Typed, str]:
        """Return the type of the values that a schema describes, and their column's comment.

        The type is `NOTHING` for the schema `false`. Raises `SchemaError` for another schema that
        no value satisfies, because that is a mistake.
        """
        found = self._parts(schema, where)
        if found is None:  # the type is recursive, so it has no finite set of columns
            return ANYTHING, ""
        typed = self._within(found, {}, (), where)
        if typed == NOTHING and not found.is_false:
            raise SchemaError(f"{where}: no value satisfies all parts of the schema")
        return typed, _comment(found.words)

    def _parts(self, schema: object, where: str) -> Parts | None:
        return parts_of(schema, self._resolve, self._open, where)

    def _within(
        self, parts: Parts, words: Schema, choices: tuple[Sequence[object], ...], where: str
    ) -> Typed:
        """Return the type of values that match all arguments.

        `parts` is a merged schema, `words` are further keywords, and `choices` are further
        lists of alternatives. During this call, `_open` contains the references of `parts`, so
        that `_parts` detects a schema that contains itself.
        """
        if parts.is_false:
            return NOTHING
        self._open.extend(parts.refs)
        try:
            together = combined(words, parts.words, where)
            return self._type_of(together, (*parts.choices, *choices), where)
        finally:
            del self._open[len(self._open) - len(parts.refs) :]

    def _type_of(self, words: Schema, choices: tuple[Sequence[object], ...], where: str) -> Typed:
        """Return the common type of all combinations of the alternatives."""
        if not choices:
            return self._plain(words, where)
        first, *others = choices
        self._alternatives += len(first)
        if self._alternatives > _MOST_ALTERNATIVES:
            raise SchemaError(f"{where}: more than {_MOST_ALTERNATIVES} alternatives")
        found = common(self._choice(each, words, tuple(others), where) for each in first)
        _refuse_twins(found.kind, where)
        return found

    def _choice(
        self, choice: object, words: Schema, choices: tuple[Sequence[object], ...], where: str
    ) -> Typed:
        found = self._parts(choice, where)
        return ANYTHING if found is None else self._within(found, words, choices, where)

    def _plain(self, words: Schema, where: str) -> Typed:
        types = _types_of(words, where)
        if types is None:
            return ANYTHING
        null = ONLY_NULL if "null" in types and _may_be_null(words) else NOTHING
        kinds = (self._of_type(each, words, where) for each in sorted(types - {"null"}))
        return common((null, *kinds))

    def _of_type(self, name: str, words: Schema, where: str) -> Typed:
        """Return the type of values of the JSON type `name` that have the keywords `words`."""
        match name:
            case "string" if "x-decimal" in words:
                raise SchemaError(f"{where}: x-decimal is for numbers, not for strings")
            case "string":
                return Typed(_TEXTS.get(str(words.get("format")), fields.STRING))
            case "integer":
                return Typed(self._integer(words, where))
            case "number":
                return self._number(words, where)
            case "boolean":
                return Typed(fields.BOOLEAN)
            case "array":
                return self._array(words, where)
            case _:
                return self._object(words, where)

    def _integer(self, words: Schema, where: str) -> pa.DataType:
        lowest, highest = words.get("minimum"), words.get("maximum")
        if "x-decimal" in words:
            return _decimal(words["x-decimal"], where)
        if words.get("format") == "int32" or (lowest, highest) == _INT32:
            return fields.INTEGER
        wide = isinstance(highest, int) and highest > _INT64_MAX
        return fields.DECIMAL20 if wide and self._uint64 == "decimal" else fields.LONG

    def _number(self, words: Schema, where: str) -> Typed:
        """Return a decimal type if `x-decimal` or `multipleOf` limits the decimal places.

        Otherwise return a float or double. Without a `format`, it must keep all digits.
        """
        if "x-decimal" in words:
            return Typed(_decimal(words["x-decimal"], where))
        scale = _scale(words.get("multipleOf"), where)
        if scale == 0:
            return Typed(self._integer(words, where))
        if scale is not None and scale <= _FINEST:
            whole = min(_whole_digits(words), _MOST_DIGITS - scale)
            return Typed(pa.decimal128(whole + scale, scale))
        match words.get("format"):
            case "float":
                return Typed(fields.FLOAT)
            case "double":
                return Typed(fields.DOUBLE)
            case _:
                return Typed(fields.DOUBLE, exact=True)

    def _array(self, words: Schema, where: str) -> Typed:
        before, after = words.get("prefixItems", []), words.get("items", True)
        if not isinstance(before, list) or isinstance(after, list):
            return ANYTHING
        items = [*cast(list[object], before), *([] if after is False else [after])]
        element = common([self.typed(each, where + "[]") for each in items])
        if element.kind is None or element in (NOTHING, ONLY_NULL):
            return Typed(None)
        return Typed(fields.array_of(element.kind), exact=element.exact)

    def _object(self, words: Schema, where: str) -> Typed:
        """Return a struct for an object with named members, and a map for other objects.

        The type of the map's values is the common type of all members that the object may have.
        """
        members = words.get("properties")
        if isinstance(members, Mapping) and members:
            found = self._struct(cast(Schema, members), words, where)
            if found is not None:
                return found
        patterns = members_in(words.get("patternProperties", {}), where)
        other = words.get("additionalProperties", True)
        schemas = [*patterns.values(), *([] if other is False else [other])]
        value = common([self.typed(each, where + ".*") for each in schemas])
        if value.kind is None or value in (NOTHING, ONLY_NULL):
            return Typed(None)
        return Typed(fields.map_of(value.kind), exact=value.exact)

    def _struct(self, members: Schema, words: Schema, where: str) -> Typed | None:
        """Return the type of an object with named members.

        A member whose schema is `false` has no column, because no message may have it. The result
        is `None` if no column is left, and `NOTHING` if such a member is required.
        """
        needed = names_in(words.get("required", []), where)
        # If a required member is not among the named members, the schema of additional members
        # applies to it.
        other = words.get("additionalProperties", True)
        schemas = {**dict.fromkeys(needed, other), **members}
        schemas = {name: schemas[name] for name in (*members, *schemas)}
        found: list[pa.Field] = []
        for name, schema in schemas.items():
            typed, comment = self._described(schema, f"{where}.{name}")
            if typed != NOTHING:
                found.append(member(name, typed, comment, needed=name in needed))
            elif name in needed:
                return NOTHING
        record = fields.record(*found)
        _refuse_twins(record, where)
        return Typed(record) if found else None


def _comment(words: Schema) -> str:
    """Return the description of a value, with its unit unless the description names the unit."""
    text, unit = str(words.get("description") or ""), str(words.get("x-unit") or "")
    known = not unit or unit in text or (unit == "ns" and "nanosecond" in text)
    return text if known else f"{text} Unit: {unit}.".strip()


def _refuse_twins(kind: pa.DataType | None, where: str) -> None:
    """Raise `SchemaError` if the names of two members of a struct differ only in case."""
    seen: dict[str, str] = {}
    for each in kind if isinstance(kind, pa.StructType) else ():
        twin = seen.setdefault(each.name.lower(), each.name)
        if twin != each.name:
            raise SchemaError(
                f"{where}: members {twin!r} and {each.name!r} differ in case only, but the names of"
                " Spark's columns are case-insensitive"
            )


def _types_of(words: Schema, where: str) -> frozenset[str] | None:
    """Return the names of the types that a value may have, or `None` for any type."""
    if "type" in words:
        return types_in(words["type"], where)
    if "properties" in words:
        return frozenset({"object"})
    values = _values(words)
    if not values:
        return None
    return frozenset(map(_type_of, values))


def _type_of(value: object) -> str:
    """Return the name of a value's type in JSON Schema."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "string"


def _values(words: Schema) -> list[object] | None:
    """Return the values that the schema lists as allowed, or `None` if it lists none."""
    values = [words["const"]] if "const" in words else words.get("enum")
    return cast(list[object], values) if isinstance(values, list) else None


def _may_be_null(words: Schema) -> bool:
    values = _values(words)
    return values is None or None in values


def _decimal(value: object, where: str) -> pa.Decimal128Type:
    """Return the type that `x-decimal` defines. Raises `SchemaError` for an invalid value."""
    match value:
        case {"precision": int(precision), "scale": int(scale)} if (
            0 <= scale <= precision and 0 < precision <= _MOST_DIGITS
        ):
            return pa.decimal128(precision, scale)
        case _:
            raise SchemaError(
                f'{where}: x-decimal takes an object such as {{"precision": 18, "scale": 2}}'
                f" with at most {_MOST_DIGITS} digits, not {value!r}"
            )


def _scale(step: object, where: str) -> int | None:
    """Return the number of decimal places that multiples of `step` (`multipleOf`) need.

    Return `None` if `step` is `None`. Raises `SchemaError` for an invalid `step`.
    """
    if step is None:
        return None
    if not isinstance(step, int | float) or isinstance(step, bool) or step <= 0:
        raise SchemaError(f"{where}: multipleOf takes a number above 0, not {step!r}")
    exponent = Decimal(repr(step)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _whole_digits(words: Schema) -> int:
    """Return the maximum number of digits before the decimal point that the bounds allow.

    Return `_MOST_DIGITS` if a bound is missing.
    """
    ends = [
        [words[word] for word in pair if isinstance(words.get(word), int | float)]
        for pair in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    ]
    if not all(ends):
        return _MOST_DIGITS
    most = max(abs(Decimal(repr(each))) for end in ends for each in end)
    return max(1, len(str(int(most)))) if most < Decimal(10) ** _MOST_DIGITS else _MOST_DIGITS
