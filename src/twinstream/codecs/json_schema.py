"""`JsonSchemaCodec`: plain data that a JSON Schema describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from twinstream.codecs.codec import Codec
from twinstream.codecs.json_text import JSON, from_json, to_json
from twinstream.errors import BadArgument
from twinstream.errors.payload import PayloadError

__all__ = ["JsonSchemaCodec", "checked_schema", "read_schema", "schema_in"]

Schema = Mapping[str, Any]


class JsonSchemaCodec(Codec[Any]):
    """A codec for plain data (dictionaries, lists, text, numbers) that fits a JSON Schema.

    Values are validated when they are encoded and when they are decoded. `$ref` works within the
    schema and each `$id` in it; nothing is fetched. Patterns of the schema run on payloads of any
    client, so take schemas only from sources that you trust.

    Args:
        schema: The schema, or the path of its JSON file.

    Raises:
        BadArgument: The file cannot be read, the schema is invalid, or jsonschema is not installed
            (the extra payloads).
    """

    def __init__(self, schema: Schema | str | PathLike[str]) -> None:
        name = "the schema" if isinstance(schema, Mapping) else str(schema)
        found = schema if isinstance(schema, Mapping) else read_schema(schema)
        self._validator: Final = checked_schema(found, name)
        self._name: Final = str(found.get("title") or name)

    @property
    def content_type(self) -> str:
        """The media type, `application/json`."""
        return JSON

    def __repr__(self) -> str:
        return f"<JsonSchemaCodec {self._name}>"

    def encode(self, value: Any) -> bytes:
        """Return the value as JSON. Raises `BadArgument` if it does not fit the schema.

        Args:
            value: The value to encode.
        """
        try:
            data = to_json(value)
        except Exception as error:
            raise BadArgument(f"a value cannot be encoded as JSON: {error}") from error
        try:
            # What a reader will get: a tuple is a list there.
            self._check(from_json(data))
        except PayloadError as error:
            raise BadArgument(f"a value does not fit {self._name}: {error}") from error
        return data

    def decode(self, data: bytes) -> Any:
        """Return the plain data. Raises `PayloadError` with the path of what does not fit.

        Args:
            data: The bytes of a payload.
        """
        plain = from_json(data)
        self._check(plain)
        return plain

    def _check(self, plain: Any) -> None:
        """Raise `PayloadError` if a value does not fit the schema, with the most relevant place."""
        from jsonschema import exceptions

        best_match: Any = cast("Any", exceptions).best_match
        try:
            error: Any = best_match(self._validator.iter_errors(plain))
        except RecursionError as cause:
            raise PayloadError("", "nested too deeply") from cause
        except Exception as cause:
            # A pattern or a reference of the schema failed.
            raise PayloadError("", f"{type(cause).__name__}: {cause}") from cause
        if error is not None:
            raise PayloadError(error.json_path, f"{error.message:.400}")


def read_schema(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the JSON Schema of a file. Raises `BadArgument`."""
    try:
        found: Any = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadArgument(f"{path}: no JSON Schema: {error}") from error
    if not isinstance(found, dict):
        raise BadArgument(f"{path}: a JSON Schema is an object, got {type(found).__name__}")
    return cast("dict[str, Any]", found)


def schema_in(folder: Path, schema: object) -> dict[str, Any]:
    """Return a schema that a configuration in `folder` has: itself, or the path of its file.

    Raises `BadArgument`.
    """
    if isinstance(schema, str):
        return read_schema(folder / schema)
    if not isinstance(schema, dict):
        raise BadArgument("a schema is a mapping, or the path of a JSON file")
    return cast("dict[str, Any]", schema)


def checked_schema(schema: Schema, name: str) -> Any:
    """Return a validator of a schema. Raises `BadArgument`; `name` is the schema's name in it."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry, Resource
        from referencing.exceptions import Unresolvable
        from referencing.jsonschema import DRAFT202012
    except ImportError as error:
        raise BadArgument(
            "JSON Schemas need jsonschema: install Twinstream with its extra payloads (in a clone:"
            " pip install '.[payloads]')"
        ) from error
    kind: Any = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except RecursionError as error:
        raise BadArgument(f"{name}: not a JSON Schema: nested too deeply") from error
    except SchemaError as error:
        raise BadArgument(
            f"{name}: not a JSON Schema: {error.json_path}: {error.message}"
        ) from error
    resources: Any = Resource
    registries: Any = Registry
    resource = resources.from_contents(schema, default_specification=DRAFT202012)
    base = resource.id() or ""
    registry = registries().with_resource(base, resource).crawl()
    resolver = registry.resolver(base)
    for ref in _references(schema):
        try:
            resolver.lookup(ref)
        except Unresolvable as error:
            raise BadArgument(f"{name}: the reference {ref!r} is not in the schema") from error
    # Without the registry, jsonschema would fetch references that it does not know.
    return kind(schema, registry=registry)


def _references(part: Any) -> Iterator[str]:
    """Yield the references in a part of a schema, without those in examples and constants."""
    if isinstance(part, Mapping):
        members = cast("Mapping[str, Any]", part)
        for name, value in members.items():
            if name == "$ref" and isinstance(value, str):
                yield value
            elif name not in {"const", "enum", "default", "examples"}:
                yield from _references(value)
    elif isinstance(part, list):
        for each in cast("Iterable[Any]", part):
            yield from _references(each)
