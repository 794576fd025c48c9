"""Messages with the old name of a member: each value is in its column or in `_extra`."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.spark.decode import fields
from twinstream.spark.decode.payload import JsonPayloads

RENAMES = {"customer_id": "customer", "buyer": "customer", "größe": "size"}
NAMES = ["customer_id", "buyer", "customer", "größe", "size", "id", "other"]
COLUMNS = pa.schema(
    [
        fields.required("id", fields.LONG),
        fields.required("customer", fields.LONG),
        fields.optional("size", fields.record(fields.optional("size", fields.LONG))),
    ]
)


def decoded(*payloads: bytes) -> list[dict[str, Any]]:
    decoder = JsonPayloads(COLUMNS, lenient=False, keep_extras=True, renames=RENAMES)
    found = decoder.decode(pa.array(payloads, pa.binary()))
    columns = [found.column(name).to_pylist() for name in COLUMNS.names]
    rows = [dict(zip(COLUMNS.names, row, strict=True)) for row in zip(*columns, strict=True)]
    extras = found.extras.to_pylist()
    return [
        {"error": found.misfits[at]}
        if at in found.misfits
        else {**row, "_extra": None if extras[at] is None else json.loads(extras[at])}
        for at, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("text", "customer", "extra"),
    [
        ('{"id": 1, "customer": 5}', 5, None),
        ('{"id": 1, "customer_id": 5}', 5, None),
        ('{"customer_id":5,"id":1}', 5, None),
        ('{"id": 1, "\\u0063ustomer_id": 5}', 5, None),
        ('{"id": 1, "customer_id": 5, "customer": 6}', 6, {"customer_id": 5}),
        ('{"id": 1, "buyer": 7, "customer_id": 5}', 5, {"buyer": 7}),
        ('{"id": 1, "customer": 6, "note": "customer_id"}', 6, {"note": "customer_id"}),
        ('{"id": 1, "customer_id": 5, "note": "customer"}', 5, {"note": "customer"}),
        ('{"id": 1, "customer_id": 5, "in": {"customer_id": 8, "customer": 9}}', 5,
         {"in": {"customer_id": 8, "customer": 9}}),
        ('{"id": 1, "customer_id": 5, "big": 12345678901234567890.125}', 5,
         {"big": 12345678901234567890.125}),
    ],
)  # fmt: skip
def test_old_names_fill_the_new_column(
    text: str, customer: int, extra: dict[str, Any] | None
) -> None:
    (found,) = decoded(text.encode())
    assert found == {"id": 1, "customer": customer, "size": None, "_extra": extra}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": 1, "customer_id": "x"}', "customer: expected an integer, got text 'x'"),
        ('{"id": 1, "customer_id": null}', "customer: required member is null"),
        ('{"id": 1, "customer_id": 5, "customer": null}', "customer: required member is null"),
        ('{"id": 1, "other": {"customer_id": 5}}', "customer: required member is missing"),
        ('{"id": 1, "customer_id": 5, "customer_id": 6}', "'customer_id' occurs twice"),
        ('{"id": 1, "customer_id": 5', "not JSON: Expecting ',' delimiter at line 1, column 27"),
        ('["customer_id"]', "the message: expected an object, got an array"),
    ],
)
def test_reasons_of_messages_with_old_names(text: str, reason: str) -> None:
    (found,) = decoded(text.encode())
    assert reason in found["error"]


def expected(members: dict[str, Any]) -> dict[str, Any]:
    rest = dict(members)
    row: dict[str, Any] = {"id": rest.pop("id", None)}
    for name, others in {"customer": ["customer_id", "buyer"], "size": ["größe"]}.items():
        names = [each for each in (name, *others) if each in rest]
        row[name] = rest.pop(names[0]) if names else None
    return {**row, "_extra": rest or None}


numbers = st.integers(-(2**63), 2**63 - 1)
members = st.dictionaries(st.sampled_from(NAMES), numbers, max_size=7).map(
    lambda found: {
        name: {"size": value} if name in ("größe", "size") else value
        for name, value in found.items()
    }
)


@given(st.lists(st.tuples(members, st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_each_value_is_in_its_column_or_an_extra(
    messages: list[tuple[dict[str, Any], bool, bool]],
) -> None:
    texts = [
        json.dumps(each, ensure_ascii=escaped, separators=(",", ":") if short else None).encode()
        for each, escaped, short in messages
    ]
    for (each, _, _), found in zip(messages, decoded(*texts), strict=True):
        wanted = expected(each)
        if wanted["id"] is None or wanted["customer"] is None:
            assert "required member is missing" in found["error"]
        else:
            assert found == wanted
