"""From JSON Schema to columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.huge import huge
from twinstream.spark.decode import fields
from twinstream.spark.decode.json_schema import load_schema, schema_text, struct_of
from twinstream.spark.decode.sql_names import sql_name
from twinstream.spark.errors import SchemaError


def kind(schema: Any, **options: Any) -> str:
    found = struct_of({"type": "object", "properties": {"a": schema}}, **options)
    return sql_name(found["a"].type)


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": ["null", "string"], "format": "date"}, "date"),
        ({"type": "string", "format": "time"}, "string"),
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
def test_json_types_become_types_of_columns(schema: Any, named: str) -> None:
    assert kind(schema) == named


B, C = {"b": {"type": "string"}}, {"c": {"type": "integer"}}
INT32, FLOAT = {"type": "integer", "format": "int32"}, {"type": "number", "format": "float"}
CENTS = {"type": "number", "multipleOf": 0.01}


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "number", "format": "double"}, "double"),
        (FLOAT, "float"),
        (CENTS, "decimal(38,2)"),
        ({**CENTS, "minimum": 0, "maximum": 99999.99}, "decimal(7,2)"),
        ({**CENTS, "exclusiveMinimum": -1000000, "maximum": 5}, "decimal(9,2)"),
        ({**CENTS, "maximum": 5}, "decimal(38,2)"),
        ({**CENTS, "minimum": 0, "maximum": 0.5}, "decimal(3,2)"),
        ({**CENTS, "minimum": -1e300, "maximum": 1e300}, "decimal(38,2)"),
        ({"type": "number", "multipleOf": 0.250}, "decimal(38,2)"),
        ({"type": "number", "multipleOf": 1e-9}, "decimal(38,9)"),
        ({"type": "number", "multipleOf": 1e-30}, "double"),
        ({"type": "number", "multipleOf": 5}, "bigint"),
        ({"type": "integer", "multipleOf": 5}, "bigint"),
        ({"type": "number", "x-decimal": {"precision": 18, "scale": 4}}, "decimal(18,4)"),
        ({"type": "integer", "x-decimal": {"precision": 30, "scale": 0}}, "decimal(30,0)"),
        ({"type": "array", "items": CENTS}, "array<decimal(38,2)>"),
    ],
)
def test_numbers_become_decimals_on_wish(schema: Any, named: str) -> None:
    assert kind(schema) == named


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"anyOf": [INT32, {"type": "integer"}]}, "bigint"),
        ({"oneOf": [FLOAT, {"type": "number"}]}, "double"),
        ({"anyOf": [FLOAT, INT32]}, "double"),
        ({"anyOf": [CENTS, {"type": "integer"}]}, "decimal(38,2)"),
        ({"anyOf": [{**CENTS, "minimum": 0, "maximum": 9}, INT32]}, "decimal(12,2)"),
        (
            {"anyOf": [CENTS, {"type": "integer", "x-decimal": {"precision": 38, "scale": 0}}]},
            "string",
        ),
        ({"anyOf": [CENTS, {"type": "number"}]}, "double"),
        ({"type": ["integer", "number", "null"]}, "double"),
        ({"enum": [1, 2.5]}, "double"),
        ({"enum": [[1], {}]}, "string"),
        ({"oneOf": [{"type": "string"}, {"type": "string", "format": "date-time"}]}, "string"),
        ({"type": ["array", "object"]}, "string"),
        (
            {
                "anyOf": [
                    {"type": "array", "items": INT32},
                    {"type": "array", "items": {"type": "integer"}},
                ]
            },
            "array<bigint>",
        ),
        (
            {
                "anyOf": [
                    {"type": "object", "additionalProperties": INT32},
                    {"type": "object", "additionalProperties": {"type": "number"}},
                ]
            },
            "map<string,double>",
        ),
        ({"anyOf": [{"type": "object", "properties": B}, {"type": "object"}]}, "string"),
        ({"oneOf": [{"properties": B}, {"properties": C}]}, "struct<b:string,c:bigint>"),
        (
            {"oneOf": [{"properties": B}, {"properties": {"b": {"type": "null"}}}]},
            "struct<b:string>",
        ),
        ({"oneOf": [{"properties": B}, {"properties": {"b": INT32}}]}, "struct<b:string>"),
        ({"oneOf": [{"type": "string"}, False, {"type": "null"}]}, "string"),
        ({"type": "string", "oneOf": [{"minLength": 3}, {"type": "null"}]}, "string"),
        ({"type": "number", "anyOf": [{"type": "integer"}]}, "bigint"),
    ],
)
def test_alternatives_have_a_type_for_all_values(schema: Any, named: str) -> None:
    assert kind(schema) == named


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"$ref": "#/$defs/B", "properties": C}, "struct<c:bigint,b:string>"),
        ({"$ref": "#/$defs/B", "allOf": [{"properties": C}]}, "struct<b:string,c:bigint>"),
        (
            {"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}], "properties": C},
            "struct<c:bigint,b:string>",
        ),
        ({"$ref": "#/$defs/Number", "format": "int32"}, "int"),
        ({"$ref": "#/$defs/Number", "type": ["integer", "null"]}, "bigint"),
        ({"$ref": "#/$defs/Text", "format": "date"}, "date"),
        (
            {"$ref": "#/$defs/Text", "anyOf": [{"format": "date-time"}, {"format": "date"}]},
            "string",
        ),
        ({"$ref": "#/$defs/Loop", "type": "string"}, "string"),
        (
            {"allOf": [{"properties": B}, {"properties": {"b": {"format": "date"}}}]},
            "struct<b:date>",
        ),
        (
            {
                "allOf": [
                    {"type": "array"},
                    {"items": {"type": "integer"}},
                    {"items": {"format": "int32"}},
                ]
            },
            "array<int>",
        ),
        (
            {
                "allOf": [
                    {"type": "object", "additionalProperties": {"type": "integer"}},
                    {"additionalProperties": {"format": "int32"}},
                ]
            },
            "map<string,int>",
        ),
        ({"allOf": [CENTS, {"maximum": 999}], "minimum": 0, "maximum": 10**9}, "decimal(5,2)"),
        ({"allOf": [CENTS, {"multipleOf": 0.1}]}, "decimal(38,1)"),
        ({"allOf": [{"enum": ["a", 1]}, {"enum": ["a"]}]}, "string"),
        ({"$ref": "#/$defs/Parts/allOf/1/properties/c"}, "bigint"),
        ({"$ref": "#/$defs/a%20b"}, "boolean"),
    ],
)
def test_all_parts_of_a_schema_apply(schema: Any, named: str) -> None:
    found = struct_of(
        {
            "type": "object",
            "properties": {"a": schema},
            "$defs": {
                "B": {"type": "object", "properties": B},
                "Number": {"type": "integer"},
                "Text": {"type": "string"},
                "Loop": {"$ref": "#/$defs/Loop"},
                "Parts": {"allOf": [{"properties": B}, {"properties": C}]},
                "a b": {"type": "boolean"},
            },
        }
    )
    assert sql_name(found["a"].type) == named


def needs(schema: Any) -> dict[str, bool]:
    """Return the required members of a schema, and whether they may be null."""
    return {
        each.name: fields.is_nullable(each)
        for each in struct_of(schema)
        if fields.is_required(each)
    }


A, D = {"a": {"type": "string"}}, {"d": {"type": ["string", "null"]}}
DEFS = {"$defs": {"Base": {"type": "object", "properties": A, "required": ["a"]}}}


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"$ref": "#/$defs/Base", "properties": D, "required": ["d"]}, {"a": False, "d": True}),
        ({"$ref": "#/$defs/Base", "required": ["a"]}, {"a": False}),
        (
            {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": D}], "required": ["d"]},
            {"a": False, "d": True},
        ),
        ({"allOf": [{"properties": A}, {"required": ["a"]}]}, {"a": False}),
        ({"properties": {**A, **D}, "anyOf": [{"required": ["a"]}, {"required": ["d"]}]}, {}),
        (
            {"properties": {**A, **D}, "required": ["d"], "oneOf": [{"required": ["a"]}, {}]},
            {"d": True},
        ),
        (
            {"properties": {**A, **D}, "oneOf": [{"required": ["a"]}, {"required": ["a", "d"]}]},
            {"a": False},
        ),
        ({"properties": A, "required": ["other"]}, {"other": True}),
        (
            {"properties": A, "required": ["b"], "additionalProperties": {"type": "string"}},
            {"b": False},
        ),
        ({"properties": {"a": {"enum": ["x", None]}}, "required": ["a"]}, {"a": True}),
        (
            {"properties": {"a": {"type": ["string", "null"], "enum": ["x"]}}, "required": ["a"]},
            {"a": False},
        ),
        (
            {
                "properties": {"a": {"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}},
                "required": ["a"],
            },
            {"a": False},
        ),
        (
            {
                "properties": {"a": {"type": ["string", "null"], "anyOf": [{"minLength": 1}]}},
                "required": ["a"],
            },
            {"a": True},
        ),
    ],
)
def test_required_members_of_all_parts_are_checked(schema: Any, required: dict[str, bool]) -> None:
    assert needs({**schema, **DEFS}) == required


def test_a_member_with_properties_and_alternatives_is_a_record() -> None:
    schema = {
        "type": "object",
        "properties": {**A, **C},
        "anyOf": [{"required": ["a"]}, {"required": ["c"]}],
    }
    assert sql_name(struct_of(schema)) == "struct<a:string,c:bigint>"
    assert kind(schema) == "struct<a:string,c:bigint>"


def test_elements_of_arrays_and_values_of_maps_are_of_all_kinds_that_the_schema_has() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    assert kind({"type": "array", "prefixItems": [text], "items": number}) == "string"
    assert kind({"type": "array", "prefixItems": [text, text], "items": False}) == "array<string>"
    assert kind({"type": "array", "prefixItems": [text]}) == "string"
    mixed = {"type": "object", "additionalProperties": text, "patternProperties": {"^n": number}}
    assert kind(mixed) == "string"
    assert kind({**mixed, "additionalProperties": False}) == "map<string,bigint>"
    assert kind({"type": "object", "patternProperties": {"^n": number}}) == "string"


@pytest.mark.parametrize(
    ("schema", "exact"),
    [
        ({"type": "number"}, True),
        ({"type": "array", "items": {"type": "number"}}, True),
        ({"type": "object", "additionalProperties": {"type": "number"}}, True),
        ({"type": "number", "format": "double"}, False),
        ({"type": "array", "items": {"type": "number", "format": "double"}}, False),
        (FLOAT, False),
        ({"type": "integer"}, False),
        ({"anyOf": [FLOAT, {"type": "integer"}]}, True),
        ({"anyOf": [FLOAT, {"type": "number", "format": "double"}]}, False),
    ],
)
def test_numbers_may_be_rounded_only_if_the_schema_allows_it(schema: Any, exact: bool) -> None:
    found = struct_of({"type": "object", "properties": {"a": schema}})
    assert fields.is_exact(found["a"]) == exact


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
    assert sql_name(found) == "struct<n:bigint,next:string>"
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
    assert fields.comment_of(found["a"]) == "How long. Unit: s."
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
        ({"type": "object", "properties": {"a": {"oneOf": {}}}}, "oneOf takes a list"),
        ({"properties": {"a": {"allOf": {}}}}, r"schema\.a: allOf takes a list"),
        (
            {"properties": {"a": {"type": "int"}}},
            r"schema\.a: 'int' is no type; the types are array",
        ),
        ({"properties": {"a": {"type": ["string", {}]}}}, "is no type"),
        ({"properties": {"a": {}}, "required": True}, "required takes a list of names, not True"),
        ({"properties": {"a": {"$ref": 7}}}, r"\$ref takes text"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, r"\$dynamicRef is not supported"),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/b"}},
                "$defs": {"b": {"$id": "b.json", "items": {"$ref": "#/$defs/c"}}},
            },
            r"a document 'b\.json' whose \$ref are relative",
        ),
        (
            {"properties": {"a": {"type": "number", "multipleOf": 0}}},
            r"schema\.a: multipleOf takes a number above 0, not 0",
        ),
        (
            {"properties": {"a": {"type": "number", "x-decimal": {"precision": 39, "scale": 2}}}},
            "x-decimal takes an object such as .* at most 38 digits",
        ),
        (
            {"properties": {"a": {"type": "string", "x-decimal": {"precision": 9, "scale": 2}}}},
            "x-decimal is for numbers, not for strings",
        ),
        (
            {"properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}},
            r"schema\.a: no value satisfies all parts",
        ),
        ({"oneOf": [{"properties": {"a": {}}}, {"properties": {"A": {}}}]}, "differ in case only"),
        (
            {"properties": {"a": {"allOf": [{"anyOf": [{}] * 11}] * 5}}},
            "more than 10000 alternatives",
        ),
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
    with pytest.raises(SchemaError, match="cannot be read: it has more than 64 MiB"):
        schema_text(str(huge(tmp_path / "huge.json")))
    with pytest.raises(SchemaError, match="is not JSON"):
        load_schema("{,}")
    file.write_text("[]")
    with pytest.raises(SchemaError, match=r"file '.*' must be an object"):
        schema_text(str(file))


def test_a_member_that_no_message_may_have_has_no_column() -> None:
    text = {"type": "string"}
    for never in (False, {"allOf": [text, False]}, {"$ref": "#/$defs/never"}):
        schema = {
            "type": "object",
            "properties": {"a": text, "b": never},
            "$defs": {"never": False},
        }
        assert sql_name(struct_of(schema)) == "struct<a:string>"
        with pytest.raises(SchemaError, match="the schema: no value satisfies"):
            struct_of({**schema, "required": ["b"]})
        with pytest.raises(SchemaError, match="the root of the JSON Schema must be an object"):
            struct_of({**schema, "properties": {"b": never}})
    inner = {"type": "object", "properties": {"b": False}, "additionalProperties": text}
    outer = {"type": "object", "properties": {"o": inner, "a": text}}
    assert sql_name(struct_of(outer)) == "struct<o:map<string,string>,a:string>"
    with pytest.raises(SchemaError, match="the schema: no value satisfies"):
        struct_of({**outer, "required": ["z"], "additionalProperties": False})


def test_an_alternative_without_a_member_leaves_the_type_to_the_others() -> None:
    number = {"type": "object", "properties": {"b": {"type": "integer"}}}
    without = {"type": "object", "properties": {"a": {"type": "string"}, "b": False}}
    assert sql_name(struct_of({"anyOf": [without, number]})) == "struct<a:string,b:bigint>"
    needs = {"required": ["b"], "oneOf": [without, number]}
    assert sql_name(struct_of(needs)) == "struct<b:bigint>"
