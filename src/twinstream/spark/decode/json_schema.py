"""Turn a JSON Schema into Spark columns.

Objects with named members become structs, objects of one value type become maps, and all that has
no fixed shape is kept as JSON text rather than refused. Numbers follow their bounds: unsigned
64-bit ones are ``bigint`` (a larger value is a dead letter) or, if wanted,
``decimal(20,0)``. Every member is a nullable column; whether it must be present is checked when
a message is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from twinstream.core.wire.response import read_json
from twinstream.spark.decode import fields
from twinstream.spark.errors import SchemaError

__all__ = [
    "Resolver",
    "Uint64",
    "is_schema_text",
    "load_schema",
    "schema_text",
    "struct_of",
]

Schema: TypeAlias = Mapping[str, object]
Resolver: TypeAlias = Callable[[str], Schema]
"""Returns the schema that a ``$ref`` names."""

Uint64: TypeAlias = Literal["long", "decimal"]

_INT32: Final = (-(2**31), 2**31 - 1)
_INT64_MAX: Final = 2**63 - 1


def load_schema(text: str, where: str = "the JSON Schema") -> Schema:
    """Return the JSON Schema in a text; ``where`` is what errors call it."""
    try:
        schema = read_json(text)
    except ValueError as error:
        raise SchemaError(f"{where} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"{where} must be an object that describes an object")
    return cast(Schema, schema)


def schema_text(text_or_path: str) -> str:
    """Return the text of a JSON Schema that is given as text or as the path of a file.

    Executors get the text: they need not have the file, nor the same one. Raises
    :class:`~twinstream.spark.errors.SchemaError` for a file that holds none.
    """
    if is_schema_text(text_or_path):
        return text_or_path
    where = f"the JSON Schema file {text_or_path!r}"
    try:
        text = Path(text_or_path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{where} cannot be read: {error}") from error
    load_schema(text, where)
    return text


def is_schema_text(text_or_path: str) -> bool:
    """Tell whether this is the text of a schema, not the path of a file."""
    return text_or_path.lstrip().startswith("{")


def struct_of(
    schema: Schema, *, uint64: Uint64 = "long", resolver: Resolver | None = None
) -> StructType:
    """Return the columns of messages that a JSON Schema describes.

    Raises :class:`~twinstream.spark.errors.SchemaError` when the schema's root has no named members,
    when a ``$ref`` leads nowhere, or when two member names differ in case only (Spark's do not).
    """
    kind = _Reader(uint64, resolver or _local(schema)).type_of(schema, "the schema")
    if not isinstance(kind, StructType):
        raise SchemaError(
            "the root of the JSON Schema must be an object with 'properties', so that there are "
            "columns; use valueFormat=raw for other payloads"
        )
    return kind


def _local(root: Schema) -> Resolver:
    def resolve(ref: str) -> Schema:
        if ref == "#":
            return root
        if not ref.startswith("#/"):
            raise SchemaError(f"$ref {ref!r} leaves the document; only '#/…' can be followed")
        found = root
        for part in ref[2:].split("/"):
            inner = found.get(part.replace("~1", "/").replace("~0", "~"))
            if not isinstance(inner, Mapping):
                raise SchemaError(f"$ref {ref!r} names no schema in the document")
            found = cast(Schema, inner)
        return found

    return resolve


class _Reader:
    """Walks a schema; a type of ``None`` means "keep the value as JSON text"."""

    def __init__(self, uint64: Uint64, resolve: Resolver) -> None:
        self._uint64 = uint64
        self._resolve = resolve
        self._open: list[str] = []

    def type_of(self, schema: object, where: str) -> DataType | None:
        if not isinstance(schema, Mapping):
            return None  # true, or nonsense that is harmless as text
        node = cast(Schema, schema)
        ref = node.get("$ref")
        if isinstance(ref, str):
            return self._referred(ref, where)
        for word in ("oneOf", "anyOf"):
            if word in node:
                return self._alternative(node[word], where)
        if "allOf" in node:
            return self._merged(node, where)
        return self._plain(node, where)

    def _referred(self, ref: str, where: str) -> DataType | None:
        if ref in self._open:
            return None  # a type that holds itself has no finite set of columns
        self._open.append(ref)
        try:
            return self.type_of(self._resolve(ref), where)
        finally:
            self._open.pop()

    def _alternative(self, choices: object, where: str) -> DataType | None:
        if not isinstance(choices, list):
            raise SchemaError(f"{where}: oneOf and anyOf take a list")
        real = [each for each in cast(list[object], choices) if not _is_null(each)]
        kinds = [self.type_of(each, where) for each in real]
        first = kinds[0] if kinds else None
        return first if all(kind == first for kind in kinds) else None

    def _merged(self, node: Schema, where: str) -> DataType | None:
        parts = node["allOf"]
        if not isinstance(parts, list):
            raise SchemaError(f"{where}: allOf takes a list")
        rest = {key: value for key, value in node.items() if key != "allOf"}
        members: dict[str, StructField] = {}
        scalar: DataType | None = None
        for part in [*cast(list[object], parts), rest]:
            kind = self.type_of(part, where)
            if isinstance(kind, StructType):
                members.update((each.name, each) for each in kind.fields)
            elif kind is not None:
                scalar = kind
        return fields.record(*members.values()) if members else scalar

    def _plain(self, node: Schema, where: str) -> DataType | None:
        match _type_name(node):
            case "string":
                is_time = node.get("format") == "date-time"
                return fields.TIMESTAMP if is_time else fields.STRING
            case "integer":
                return self._integer(node)
            case "number":
                return fields.DOUBLE
            case "boolean":
                return fields.BOOLEAN
            case "array":
                element = self.type_of(node.get("items"), where + "[]")
                return None if element is None else ArrayType(element, containsNull=True)
            case "object":
                return self._object(node, where)
            case _:
                return None

    def _integer(self, node: Schema) -> DataType:
        lowest, highest = node.get("minimum"), node.get("maximum")
        if node.get("format") == "int32" or (lowest, highest) == _INT32:
            return fields.INTEGER
        wide = isinstance(highest, int) and highest > _INT64_MAX
        return fields.DECIMAL20 if wide and self._uint64 == "decimal" else fields.LONG

    def _object(self, node: Schema, where: str) -> DataType | None:
        members = node.get("properties")
        if isinstance(members, Mapping) and members:
            return self._struct(cast(Schema, members), _names(node.get("required")), where)
        value = self.type_of(node.get("additionalProperties"), where + ".*")
        return None if value is None else fields.map_of(value)

    def _struct(self, members: Schema, needed: frozenset[str], where: str) -> StructType:
        seen: dict[str, str] = {}
        found: list[StructField] = []
        for name, schema in members.items():
            twin = seen.setdefault(name.lower(), name)
            if twin != name:
                raise SchemaError(
                    f"{where}: members {twin!r} and {name!r} differ in case only, which Spark's "
                    "columns cannot"
                )
            found.append(self._member(name, schema, name in needed, where))
        return fields.record(*found)

    def _member(self, name: str, schema: object, needed: bool, where: str) -> StructField:
        kind = self.type_of(schema, f"{where}.{name}")
        comment = self._comment(schema)
        if kind is None:
            return fields.json_text(name, comment, must_exist=needed)
        if needed:
            return fields.required(name, kind, comment, nullable=self._allows_null(schema))
        return fields.optional(name, kind, comment)

    def _comment(self, schema: object) -> str:
        """Return the member's description and unit, its own before that of the type it names."""
        words, unit = "", ""
        for node in self._chain(schema):
            words = words or str(node.get("description") or "")
            unit = unit or str(node.get("x-unit") or "")
        told = not unit or unit in words or (unit == "ns" and "nanosecond" in words)
        return words if told else f"{words} Unit: {unit}.".strip()

    def _allows_null(self, schema: object) -> bool:
        for node in self._chain(schema):
            choices = node.get("oneOf") or node.get("anyOf")
            if isinstance(choices, list) and any(map(_is_null, cast(list[object], choices))):
                return True
            kind = node.get("type")
            if kind == "null" or (isinstance(kind, list) and "null" in kind):
                return True
        return False

    def _chain(self, schema: object) -> list[Schema]:
        chain: list[Schema] = []
        seen: set[str] = set()
        while isinstance(schema, Mapping):
            node = cast(Schema, schema)
            chain.append(node)
            ref = node.get("$ref")
            if not isinstance(ref, str) or ref in seen:
                break
            seen.add(ref)
            schema = self._resolve(ref)
        return chain


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and cast(Schema, schema).get("type") == "null"


def _names(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        return frozenset()
    return frozenset(each for each in cast(list[object], value) if isinstance(each, str))


def _type_name(node: Schema) -> str | None:
    """Return the one type of the values, ``None`` when there are several or none is told."""
    told = node.get("type")
    if isinstance(told, str):
        return told
    if isinstance(told, list):
        kinds = {each for each in cast(list[object], told) if each != "null"}
        if kinds == {"integer", "number"}:
            return "number"
        return cast(str, kinds.pop()) if len(kinds) == 1 else None
    if "properties" in node:
        return "object"
    values = node.get("enum", [node["const"]] if "const" in node else None)
    if not isinstance(values, list) or not values:
        return None
    classes = {type(each).__name__ for each in cast(list[object], values) if each is not None}
    names = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    return names.get(classes.pop()) if len(classes) == 1 else None
