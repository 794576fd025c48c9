"""Generate `schema.json`: the files of `schema/` as one document for other tools.

The document contains only local references (`#/$defs/...`). So every validator and editor for
JSON Schema 2020-12 can resolve them without a network or other files.

The document contains each config and each request twice. The type `<name>` allows unknown members,
which newer servers may return. In the type `strict.<name>`, an unknown member is an error, as in
requests to a server. The document itself describes config files as
`twinstream.models.load_configs` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from schemas import BASE, Schemas

DRAFT = "https://json-schema.org/draft/2020-12/schema"
STRICT = "strict."
_STREAM_FILE = "StreamFile"

Schema = dict[str, Any]


def document(schemas: Schemas) -> str:
    """Return the text of `schema.json`."""
    named = dict(_named(schemas))
    written = {
        name for name in named if name.endswith(("Config", "Request")) and "type" in named[name]
    }
    strict = _Strict(named)
    for name in sorted(written):
        strict.add(name)
    strict.found[f"{STRICT}{_STREAM_FILE}"] = _stream_file(strict.found)
    compound: Schema = {
        "$schema": DRAFT,
        "$id": f"{BASE}schema.json",
        "$comment": "Generated from schema/ by codegen/bundle.py. Edit that folder instead.",
        "title": "JetStream configurations",
        "description": "A file of configurations of streams, consumers and buckets.",
        "anyOf": _file_forms(),
        "$defs": {**named, **dict(sorted(strict.found.items()))},
    }
    return json.dumps(compound, ensure_ascii=False, indent=1) + "\n"


def _stream_file(strict: dict[str, Schema]) -> Schema:
    """Return the schema of a stream in a file, which also names the schemas of its payloads."""
    stream = strict[f"{STRICT}StreamCreateRequest"]
    payloads = {
        "description": "JSON Schemas, or paths of their files, by the subjects of the messages.",
        "type": "object",
        "additionalProperties": {"type": ["string", "object"]},
    }
    return {**stream, "properties": {**stream["properties"], "payloads": payloads}}


def _named(schemas: Schemas) -> Iterator[tuple[str, Schema]]:
    """Yield the name of each definition of each file, and its schema with local references."""
    for document in schemas.files.values():
        for name, schema in document.get("$defs", {}).items():
            yield name, _localized(schema, schemas)
        if "title" in document:
            own = {key: document[key] for key in document if key not in ("$schema", "$id", "$defs")}
            yield document["title"], _localized(own, schemas)


def _localized(value: Any, schemas: Schemas) -> Any:
    if isinstance(value, list):
        return [_localized(item, schemas) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _local(item, schemas)
        if key == "$ref" and isinstance(item, str)
        else _localized(item, schemas)
        for key, item in value.items()
    }


def _local(reference: str, schemas: Schemas) -> str:
    path, _, pointer = reference.partition("#")
    if pointer:
        return f"#{pointer}"
    return f"#/$defs/{schemas.files[path.removeprefix('../')]['title']}"


class _Strict:
    """A collector of strict copies of records, which do not allow unknown members.

    The copies contain inherited members, and refer only to strict copies of other records.
    """

    def __init__(self, named: dict[str, Schema]) -> None:
        self.named = named
        self.found: dict[str, Schema] = {}

    def add(self, name: str) -> None:
        """Add strict copies of a record and of all records that it refers to."""
        if STRICT + name in self.found:
            return
        self.found[STRICT + name] = {}  # a placeholder, because records may refer to each other
        merged = self._merged(self.named[name])
        closed = {**self._pointed(merged), "additionalProperties": False}
        closed.pop("x-keep-unknown", None)
        self.found[STRICT + name] = closed

    def _merged(self, schema: Schema) -> Schema:
        properties: Schema = {}
        required: list[str] = []
        for base in schema.get("allOf", ()):
            inherited = self._merged(self.named[_target(base["$ref"])])
            properties |= inherited.get("properties", {})
            required += inherited.get("required", ())
        properties |= schema.get("properties", {})
        required += schema.get("required", ())
        own = {key: item for key, item in schema.items() if key != "allOf"}
        own["properties"] = properties
        return {**own, "required": required} if required else own

    def _pointed(self, value: Any) -> Any:
        """Return `value` with its references to records changed to their strict copies."""
        if isinstance(value, list):
            return [self._pointed(item) for item in value]
        if not isinstance(value, dict):
            return value
        changed = {key: self._pointed(item) for key, item in value.items()}
        reference = value.get("$ref")
        if isinstance(reference, str) and "properties" in self.named[_target(reference)]:
            self.add(_target(reference))
            changed["$ref"] = f"#/$defs/{STRICT}{_target(reference)}"
        return changed


def _target(reference: str) -> str:
    return reference.removeprefix("#/$defs/")


def _file_forms() -> list[Schema]:
    """Return the schemas of the forms that a config file, or an item of a list in it, may have."""
    stream = {"$ref": f"#/$defs/{STRICT}{_STREAM_FILE}"}
    consumer = {"$ref": f"#/$defs/{STRICT}ConsumerConfig"}
    key_value = {"$ref": f"#/$defs/{STRICT}KeyValueConfig"}
    object_store = {"$ref": f"#/$defs/{STRICT}ObjectStoreConfig"}
    name = {"description": "Name of the consumer's stream.", "$ref": "#/$defs/Name"}
    own_name = {"description": "Name of the stream.", "$ref": "#/$defs/Name"}
    return [
        # `type` and `name` repeat the referenced schema, because strict validators require them in
        # the same object as `required`.
        {"type": "object", "properties": {"name": own_name}, "required": ["name"], **stream},
        consumer,
        {
            "description": "A consumer and its stream, as in a request or an answer.",
            "type": "object",
            "properties": {"stream_name": name, "config": consumer},
            "required": ["stream_name", "config"],
        },
        {
            "description": "A stream, as in an answer.",
            "type": "object",
            "properties": {"config": stream, "state": {"type": "object"}},
            "required": ["config", "state"],
        },
        {
            "description": "Several streams, consumers and buckets.",
            "type": "object",
            "properties": {
                "streams": {"type": "array", "items": {"$ref": "#"}},
                "consumers": {"type": "array", "items": {"$ref": "#"}},
                "key_values": {"type": "array", "items": key_value},
                "object_stores": {"type": "array", "items": object_store},
            },
            "minProperties": 1,
            "additionalProperties": False,
        },
        {"type": "array", "items": {"$ref": "#"}},
    ]
