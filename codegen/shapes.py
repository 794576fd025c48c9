"""Generate `shapes.py`, a table of the members that a server reads in each record.

Validation uses the table to read configs as the server does. The models are too tolerant for this,
and JSON Schema is too slow.
"""

from __future__ import annotations

from typing import Any

from schemas import Schemas

ROOTS = (
    "StreamCreateRequest",
    "StreamUpdateRequest",
    "ConsumerCreateRequest",
    "PullRequest",
    "KeyValueConfig",
    "ObjectStoreConfig",
)

SCALARS = {
    "Int64": "int64",
    "Int32": "int32",
    "UInt64": "uint64",
    "Nanoseconds": "duration",
    "Timestamp": "time",
    "Name": "text",
    "Subject": "text",
    "Metadata": "{text}",
}
PLAIN = {"boolean": "bool", "string": "text"}

HEADER = '''"""The members that a server reads in requests, with their kinds and first versions.

Generated from schema/ by codegen/shapes.py. Edit that folder instead.

A kind is `text`, `bool`, `int64`, `int32`, `uint64`, `duration`, `time`,
`word:X` for a value of the enumeration X, the name of a record, `[kind]` for a list or
`{kind}` for a map.
"""

from __future__ import annotations

'''


def module(schemas: Schemas) -> str:
    """Return the text of `shapes.py`."""
    found = _Finder(schemas.definitions())
    for root in ROOTS:
        found.record(root)
    return (
        HEADER
        + _table("SHAPES", "dict[str, dict[str, tuple[str, str]]]", found.shapes)
        + '"""The kind and the first server version of each member, by record and member."""\n\n'
        + _table("WORDS", "dict[str, dict[str, str]]", found.words)
        + '"""The first server version of each value, by enumeration; empty for all versions."""\n'
    )


class _Finder:
    """A collector of the records and enumerations that requests use, directly or indirectly."""

    def __init__(self, definitions: dict[str, tuple[str, dict[str, Any]]]) -> None:
        self.definitions = definitions
        self.by_path = {path: name for name, (path, schema) in definitions.items() if _root(schema)}
        self.shapes: dict[str, dict[str, tuple[str, str]]] = {}
        self.words: dict[str, dict[str, str]] = {}

    def record(self, name: str) -> None:
        """Add a record, and the records and enumerations that it refers to."""
        if name in self.shapes:
            return
        self.shapes[name] = {}
        path, schema = self.definitions[name]
        members: dict[str, tuple[str, str]] = {}
        for base in schema.get("allOf", []):
            parent = self._name(path, base["$ref"])
            self.record(parent)
            members |= self.shapes[parent]
        for member, inner in schema.get("properties", {}).items():
            members[member] = (self._kind(path, inner), inner.get("x-since", ""))
        self.shapes[name] = members

    def _kind(self, path: str, schema: dict[str, Any]) -> str:
        if "$ref" in schema:
            return self._reference(path, schema["$ref"])
        if schema["type"] == "array":
            return f"[{self._kind(path, schema['items'])}]"
        return PLAIN[schema["type"]]

    def _reference(self, path: str, reference: str) -> str:
        name = self._name(path, reference)
        if name in SCALARS:
            return SCALARS[name]
        schema = self.definitions[name][1]
        if "enum" not in schema:
            self.record(name)
            return name
        since = schema.get("x-enum-since", {})
        self.words[name] = {word: since.get(word, "") for word in schema["enum"]}
        return f"word:{name}"

    def _name(self, path: str, reference: str) -> str:
        """Return the name of the type that a reference in the file `path` means."""
        if "#/$defs/" in reference:
            return reference.rpartition("/")[2]
        if reference == "#":
            return self.by_path[path]
        return self.by_path[reference.removeprefix("../")]


def _root(schema: dict[str, Any]) -> bool:
    return "title" in schema


def _table(name: str, kind: str, rows: dict[str, Any]) -> str:
    text = f"{name}: {kind} = {{\n"
    for key in sorted(rows):
        text += f'    "{key}": {{\n'
        for inner, value in rows[key].items():
            text += f'        "{inner}": {_literal(value)},\n'
        text += "    },\n"
    return text + "}\n"


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(f'"{part}"' for part in value) + ")"
    return f'"{value}"'
