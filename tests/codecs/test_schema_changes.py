"""Which changes of a JSON Schema are breaks, by hand and against generated documents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from twinstream.codecs.schema_changes import schema_changes

TEXT = {"type": "string"}
OLD: dict[str, Any] = {
    "title": "Order",
    "type": "object",
    "required": ["number"],
    "properties": {
        "number": {"type": "integer"},
        "kind": {"enum": ["sale", "gift"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "$defs": {"line": {"type": "object", "properties": {"item": TEXT}}},
}


def with_property(name: str, schema: Any) -> dict[str, Any]:
    return OLD | {"properties": OLD["properties"] | {name: schema}}


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (OLD, []),
        (OLD | {"title": "X", "description": "y"}, []),
        (OLD | {"required": ["number", "kind"]}, ["break $.kind: is required now"]),
        (OLD | {"required": []}, ["unclear $.number: is no longer required"]),
        (
            with_property("number", {"type": "string"}),
            ["break $.number: the type was narrowed from integer to string"],
        ),
        (
            with_property("number", {"type": "number"}),
            ["unclear $.number: the type was widened from integer to number"],
        ),
        (
            with_property("kind", {"enum": ["sale"]}),
            ['break $.kind: removed from the enumeration: "gift"'],
        ),
        (
            with_property("kind", {"enum": ["sale", "gift", "test"]}),
            ["unclear $.kind: the enumeration has more values"],
        ),
        (OLD | {"additionalProperties": False}, ["break $: additionalProperties was closed"]),
        (with_property("note", TEXT), ["unclear $.note: is described now"]),
        (OLD | {"minProperties": 1}, ["unclear $: minProperties differs"]),
        (
            OLD | {"$defs": {"line": {"type": "object", "required": ["item"]}}},
            [
                "break $.lines[].item: is required now",
                "unclear $.lines[].item: is no longer described",
            ],
        ),
        (
            with_property("lines", {"type": "array", "items": False}),
            ["break $.lines[]: no value is allowed any more"],
        ),
        ({"type": "object"} | {"const": {}}, None),
    ],
)
def test_changes(new: dict[str, Any], found: list[str] | None) -> None:
    changes = [f"{each.kind} {each}" for each in schema_changes(OLD, new)]
    if found is None:
        assert any(each.startswith("break") for each in changes)
    else:
        assert changes == found


def test_a_schema_that_contains_itself() -> None:
    def tree(kind: str) -> dict[str, Any]:
        children = {"type": "array", "items": {"$ref": "#"}}
        properties = {"left": {"$ref": "#"}, "value": {"type": kind}, "children": children}
        return {"type": "object", "properties": properties}

    assert schema_changes(tree("string"), tree("string")) == []
    [change] = schema_changes(tree("string"), tree("integer"))
    assert (change.kind, change.path) == ("break", "$.value")


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "string"},
            {"type": "integer"},
            {"type": ["integer", "null"]},
            {"enum": ["a", "b", 1]},
            {"const": "a"},
        ]
    ),
    lambda inner: (
        st.builds(lambda each: {"type": "array", "items": each}, inner)
        | st.builds(
            lambda properties, required, more: {
                "type": "object",
                "properties": properties,
                "required": required,
                **more,
            },
            st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
            st.lists(st.sampled_from("xyz"), unique=True, max_size=2),
            st.sampled_from([{}, {"additionalProperties": False}]),
        )
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.sampled_from([None, "a", "b", "c", 1, 2, True]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(old=SCHEMAS, new=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=10))
def test_no_change_means_that_every_message_still_fits(old: Any, new: Any, values: Any) -> None:
    if schema_changes(old, new):
        return
    before, after = Draft202012Validator(old), Draft202012Validator(new)
    assert all(after.is_valid(each) for each in values if before.is_valid(each))
