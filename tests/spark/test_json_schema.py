"""From JSON Schema to Spark columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from twinstream.spark.decode import fields
from twinstream.spark.errors import SchemaError
from twinstream.spark.decode.json_schema import load_schema, schema_text, struct_of


def kind(schema: Any, **options: Any) -> str:
    found = struct_of({"type": "object", "properties": {"a": schema}}, **options)
    return found["a"].dataType.simpleString()


@pytest.mark.parametrize(
    ("schema", "spark"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": ["string", "null"], "format": "date-time"}, "timestamp"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"const": 1}, "bigint"),
        ({"type": "integer"}, "bigint"),
        ({"type": "integer", "format": "int32"}, "int"),
        ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        ({"type": "array"}, "string"),
        ({"type": "array", "items": {}}, "string"),
        ({"type": "object", "properties": {"b": {"type": "string"}}}, "struct<b:string>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map<string,double>"),
        ({"type": "object"}, "string"),
        (True, "string"),
        ({"type": ["string", "integer"]}, "string"),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "bigint"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "string"),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"b": {"type": "string"}}},
                    {"properties": {"c": {"type": "integer"}}},
                ]
            },
            "struct<b:string,c:bigint>",
        ),
    ],
)
def test_json_types_become_spark_types(schema: Any, spark: str) -> None:
    assert kind(schema) == spark


def test_wide_numbers_as_decimals_on_wish() -> None:
    schema = {"type": "integer", "maximum": 2**64 - 1}
    assert kind(schema, uint64="decimal") == "decimal(20,0)"
    assert kind({"type": "integer"}, uint64="decimal") == "bigint"


def test_references_are_followed_and_recursion_becomes_text() -> None:
    found = struct_of(
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "n": {"$ref": "#/$defs/N~1um"},
                        "next": {"$ref": "#/$defs/Node"},
                    },
                },
                "N/um": {"type": "integer"},
            },
        }
    )
    assert found.simpleString() == "struct<n:bigint,next:string>"
    assert fields.is_json(found["next"])


def test_descriptions_and_required_members_are_kept() -> None:
    found = struct_of(
        {
            "type": "object",
            "required": ["a", "b"],
            "properties": {
                "a": {"type": "integer", "description": "How long.", "x-unit": "s"},
                "b": {"type": ["string", "null"]},
                "c": {"type": "string"},
            },
        }
    )
    assert found["a"].metadata["comment"] == "How long. Unit: s."
    assert [fields.is_required(each) for each in found] == [True, True, False]
    assert [fields.is_nullable(each) for each in found] == [False, True, True]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "string"}, "must be an object with 'properties'"),
        ({"type": "object"}, "must be an object with 'properties'"),
        (
            {"type": "object", "properties": {"a": {}, "A": {}}},
            "members 'a' and 'A' differ in case only",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, "names no schema"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "leaves the document"),
        ({"type": "object", "properties": {"a": {"oneOf": {}}}}, "take a list"),
    ],
)
def test_schemas_that_give_no_columns(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        struct_of(schema)


def test_schemas_come_as_text_or_file(tmp_path: Path) -> None:
    text = '{"type": "object", "properties": {"a": {"type": "string"}}}'
    file = tmp_path / "order.json"
    file.write_text(text)
    assert schema_text(text) == schema_text(str(file)) == text
    with pytest.raises(SchemaError, match="cannot be read"):
        schema_text(str(tmp_path / "none.json"))
    with pytest.raises(SchemaError, match="is not JSON"):
        load_schema("{,}")
    file.write_text("[]")
    with pytest.raises(SchemaError, match=r"file '.*' must be an object"):
        schema_text(str(file))
