"""Typed decoding: both halves agree, every message is answered for, nothing is guessed."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinstream.spark.decode import fields
from twinstream.spark.decode.decode import Decoded, JsonDecoder
from twinstream.spark.decode.json_schema import struct_of
from twinstream.spark.decode.sql_names import sql_name
from twinstream.spark.errors import SchemaError

ORDER = struct_of(
    {
        "type": "object",
        "required": ["id", "total"],
        "properties": {
            "id": {"type": "string"},
            "total": {"type": "number"},
            "count": {"type": "integer"},
            "paid": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "lines": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["sku"],
                    "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}},
                },
            },
            "to": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
)
GOOD = {"id": "1", "total": 1.5}


def column(payloads: list[bytes]) -> pa.Array:
    return pa.array(payloads, pa.binary())


def decode(*payloads: object, **options: Any) -> Decoded:
    blocks = [p if isinstance(p, bytes) else json.dumps(p).encode() for p in payloads]
    return JsonDecoder(ORDER, **options).decode(column(blocks))


def one_by_one(payloads: list[bytes]) -> Decoded:
    decoder = JsonDecoder(ORDER)
    parts = [decoder.one_by_one(column([payload])) for payload in payloads]
    misfits = {at: part.misfits[0] for at, part in enumerate(parts) if part.misfits}
    rows = decoder.one_by_one(column(payloads))
    assert rows.misfits == misfits
    return rows


def test_values_are_exact() -> None:
    full = {
        "id": "ü\u0000",
        "total": 0.1,
        "count": -(2**63),
        "paid": False,
        "at": "2024-02-29T23:59:59.123456789+02:00",
        "tags": ["", "x", None],
        "lines": [{"sku": "a", "n": 2}, None, {"sku": "b"}],
        "to": {"city": None},
    }
    found = decode(full, GOOD)
    assert not found.misfits
    first, second = found.rows.to_pylist()
    assert first.pop("at").isoformat() == "2024-02-29T21:59:59.123456+00:00"
    del full["at"]
    full["lines"] = [{"sku": "a", "n": 2}, None, {"sku": "b", "n": None}]
    assert first == full
    assert second["to"] is None
    assert second["lines"] is None


def test_the_zero_time_of_the_server_survives() -> None:
    found = decode({**GOOD, "at": "0001-01-01T00:00:00Z"})
    assert found.rows.to_pylist()[0]["at"].year == 1


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not JSON: Expecting value"),
        (b"  ", "not JSON"),
        (b"{}{}", "not JSON: Extra data"),
        (b'{"id":"1","total":1', "not JSON"),
        (b"\xff{}", "not UTF-8 at byte 0"),
        (b'{"id":"\xc3\x28","total":1}', "not UTF-8 at byte 7"),
        (b"null", "expected an object, got null"),
        (b"[1]", "expected an object, got an array"),
        (b'{"total":1}', "id: required member is missing"),
        (b'{"id":null,"total":1}', "id: required member is null"),
        (b'{"id":1,"total":1}', "id: expected text, got 1"),
        (b'{"id":"1","total":"1"}', "total: expected a number, got text '1'"),
        (b'{"id":"1","total":true}', "total: expected a number, got true"),
        (b'{"id":"1","total":NaN}', "NaN is not a JSON number"),
        (b'{"id":"1","total":1e999}', "total: 1E+999 does not fit a double"),
        (b'{"id":"1","total":1,"count":1.5}', "count: expected an integer, got 1.5"),
        (
            b'{"id":"1","total":1,"count":9223372036854775808}',
            "does not fit a signed 64-bit integer",
        ),
        (b'{"id":"1","id":"2","total":1}', "member 'id' occurs twice"),
        (b'{"id":"1","total":1,"at":"yesterday"}', "at: expected a timestamp such as"),
        (b'{"id":"1","total":1,"at":"2024-02-30T00:00:00Z"}', "is not a timestamp"),
        (b'{"id":"1","total":1,"at":"0000-12-31T23:59:59Z"}', "not in the years 1 to 9999"),
        (b'{"id":"1","total":1,"at":"0001-01-01T00:00:00+01:00"}', "not in the years 1 to 9999"),
        (b'{"id":"1","total":1,"at":"9999-12-31T23:59:59-01"}', "not in the years 1 to 9999"),
        (b'{"id":"1","total":1,"lines":[{"n":1}]}', "lines[].sku: required member is missing"),
        (b'{"id":"1","total":1,"to":[]}', "to: expected an object, got an array"),
        (b'{"id":"\\ud800","total":1}', "id: contains a lone surrogate"),
        (b'{"id":"1","total":1,"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "too deeply"),
    ],
)
def test_misfits_have_reasons_and_leave_the_others_alone(payload: bytes, reason: str) -> None:
    others = [json.dumps({**GOOD, "id": str(at)}).encode() for at in range(100)]
    found = JsonDecoder(ORDER).decode(column([*others[:60], payload, *others[60:]]))
    assert list(found.misfits) == [60]
    assert reason in found.misfits[60]
    rows = found.rows.to_pylist()
    assert rows.pop(60) is None
    assert [row["id"] for row in rows] == [str(at) for at in range(100)]


def test_payloads_that_parse_only_together_are_not_accepted() -> None:
    found = decode(b'{"id":"1",', b'"total":1}', b'{"id":"2","total":1}{"id":"3","total":1}')
    assert sorted(found.misfits) == [0, 1, 2]


def test_blank_space_around_a_document_is_fine() -> None:
    found = decode(b' {"id":"1","total":1}\n', b'{"id":"2",\n"total":2}')
    assert not found.misfits
    assert [row["id"] for row in found.rows.to_pylist()] == ["1", "2"]


def test_integers_may_be_written_as_numbers() -> None:
    found = decode(b'{"id":"1","total":1,"count":3.0}', b'{"id":"1","total":1,"count":1e3}')
    assert [row["count"] for row in found.rows.to_pylist()] == [3, 1000]


def test_members_without_a_column_are_kept() -> None:
    extra = {
        **GOOD,
        "x": {"y": [1]},
        "to": {"city": "a", "zip": 7},
        "lines": [{"sku": "s", "q": 1}],
    }
    found = decode(GOOD, extra)
    assert found.extras.to_pylist()[0] is None
    kept = json.loads(found.extras.to_pylist()[1])
    assert kept == {"x": {"y": [1]}, "to": {"zip": 7}, "lines": {"0": {"q": 1}}}
    assert decode(extra, keep_extras=False).extras.to_pylist() == [None]


def test_maps_json_text_and_wide_numbers() -> None:
    columns = struct_of(
        {
            "type": "object",
            "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "any": {},
                "big": {"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
            },
        },
        uint64="decimal",
    )
    assert sql_name(columns) == "struct<labels:map<string,string>,any:string,big:decimal(20,0)>"
    payload = {"labels": {"a": "1", "ü": "2"}, "any": {"z": [1, "ü"]}, "big": 2**64 - 1}
    payloads = [json.dumps(payload).encode(), b'{"any":"text"}', b"{}"]
    found = JsonDecoder(columns).decode(column(payloads))
    first, second, third = found.rows.to_pylist()
    assert dict(first["labels"]) == {"a": "1", "ü": "2"}
    assert json.loads(first["any"]) == {"z": [1, "ü"]}
    assert first["big"] == Decimal(2**64 - 1)
    assert second["any"] == '"text"'
    assert third == {"labels": None, "any": None, "big": None}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.decimal128(38, 18), "12345678901.5", Decimal("12345678901.5")),
        (pa.decimal128(20, 18), "0.123456789012345678", Decimal("0.123456789012345678")),
        (pa.decimal128(38, 0), "1e37", Decimal(10**37)),
        (pa.decimal128(38, 0), "1e38", "1E+38 does not fit decimal(38,0)"),
        (pa.decimal128(10, 1), "1.50", Decimal("1.5")),
        (pa.decimal128(10, 1), "0.05", "0.05 does not fit decimal(10,1)"),
        (pa.decimal128(10, 1), "1e999999999", "does not fit decimal(10,1)"),
        (pa.decimal128(10, 1), "9" * 100 + ".5", "does not fit decimal(10,1)"),
        (fields.LONG, "9007199254740993.0", 2**53 + 1),
        (fields.LONG, "1e999999999", "1E+999999999 does not fit a signed 64-bit integer"),
        (fields.LONG, "7" * 5000, f"n: {'7' * 40}… does not fit a signed 64-bit integer"),
        (fields.DOUBLE, "7" * 5000, f"n: {'7' * 40}… does not fit a double"),
        (pa.decimal128(10, 1), "-" + "7" * 5000, "does not fit decimal(10,1)"),
        (fields.FLOAT, "1e39", "1E+39 does not fit a float"),
        (fields.FLOAT, "-0.5", -0.5),
        (fields.DOUBLE, "1.50", 1.5),
    ],
)
def test_numbers_are_exact_or_misfits(kind: pa.DataType, text: str, expected: object) -> None:
    decoder = JsonDecoder(fields.record(fields.optional("n", kind)))
    found = decoder.decode(column([b'{"n":%s}' % text.encode()]))
    if isinstance(expected, str):
        assert expected in found.misfits[0]
    else:
        assert found.rows.to_pylist() == [{"n": expected}]


def amounts(*texts: str, kind: pa.DataType = fields.DOUBLE, exact: bool = True) -> Decoded:
    """Decode messages that have these texts for a number."""
    decoder = JsonDecoder(fields.record(fields.optional("n", kind, exact=exact)))
    found = decoder.decode(column([b'{"n":%s}' % text.encode() for text in texts]))
    assert (
        found.misfits
        == decoder.one_by_one(column([b'{"n":%s}' % t.encode() for t in texts])).misfits
    )
    return found


KEPT = [
    "0.1",
    "1.50",
    "0.30000000000000004",
    "0.10000000000000001",
    "0.1000000000000000055511151231257827",
    "9007199254740992",
    "100000000000000000000000.0",
    "5e-324",
    "0.00000000000000000000",
    "-1E+22",
]
CHANGED = [
    "9007199254740993",
    "100000000000000001",
    "999999999999999.99",
    "0.1000000000000000000001",
    "-123456789.12345678901",
    "12345678901234567890e-19",
    "1e-400",
    "1.23456e-320",
]


@pytest.mark.parametrize("text", CHANGED)
def test_a_number_that_a_double_changes_does_not_fit(text: str) -> None:
    found = amounts("1.5", text, "2.5")
    assert list(found.misfits) == [1]
    assert found.misfits[1].endswith("has digits that a double would lose")
    assert [row and row["n"] for row in found.rows.to_pylist()] == [1.5, None, 2.5]


@pytest.mark.parametrize("text", KEPT)
def test_a_number_that_a_double_keeps_fits(text: str) -> None:
    found = amounts(text)
    assert found.rows.to_pylist() == [{"n": float(text)}]


@pytest.mark.parametrize("text", CHANGED)
def test_number_is_rounded_on_request(text: str) -> None:
    assert amounts(text, exact=False).rows.to_pylist() == [{"n": float(text)}]


@pytest.mark.parametrize("text", ["[1.5,%s]", "[ 0.25 , null, %s ]", "[%s]", "[1e-300,%s,1]"])
def test_numbers_of_arrays_are_exact(text: str) -> None:
    kind = fields.array_of(fields.DOUBLE)
    fine = [text % "1.5", "[]", "null", text % "0.30000000000000004"]
    found = amounts(*fine, text % CHANGED[0], *fine, kind=kind)
    assert list(found.misfits) == [4]
    assert found.misfits[4].startswith("n[]: 9007199254740993 has digits")
    nested = amounts(
        "[" + text % "1" + "]", "[" + text % CHANGED[0] + "]", kind=fields.array_of(kind)
    )
    assert list(nested.misfits) == [1]


def test_numbers_of_maps_and_records_are_exact() -> None:
    schema = {
        "type": "object",
        "properties": {
            "in": {"type": "object", "properties": {"n": {"type": "number"}}},
            "by": {"type": "object", "additionalProperties": {"type": "number"}},
        },
    }
    messages = [
        b'{"in":{"n":%s}}',
        b'{"by":{"x":%s}}',
        b'{"in":{"\\u006e":%s}}',
        b'{"in":{"n" : %s}}',
    ]
    found = JsonDecoder(struct_of(schema)).decode(
        column([m % t for m in messages for t in (b"0.5", b"9007199254740993")])
    )
    assert sorted(found.misfits) == [1, 3, 5, 7]
    assert found.misfits[3].startswith("by.*: 9007199254740993")


class OnlyFast(JsonDecoder):
    """Refuses to decode messages one by one."""

    def one_by_one(self, payloads: pa.Array) -> Decoded:
        raise AssertionError(f"{len(payloads)} messages one by one")


def test_exact_long_numbers_use_the_fast_path() -> None:
    decoder = OnlyFast(fields.record(fields.optional("n", fields.DOUBLE, exact=True)))
    numbers = [1 / each for each in range(1, 1000)]
    found = decoder.decode(column([b'{"n":%s}' % repr(each).encode() for each in numbers]))
    assert [row["n"] for row in found.rows.to_pylist()] == numbers


@pytest.mark.parametrize("absent", [b'{"id":1}', b'{"id":1,"n":null,"inner":{},"all":[{}]}'])
@pytest.mark.parametrize("kind", [fields.DOUBLE, fields.LONG, fields.BOOLEAN, fields.TIMESTAMP])
def test_members_that_no_message_has_use_the_fast_path(kind: pa.DataType, absent: bytes) -> None:
    member = fields.optional("n", kind)
    inner = fields.record(member)
    columns = fields.record(
        fields.required("id", fields.LONG),
        member,
        fields.optional("inner", inner),
        fields.optional("all", fields.array_of(inner)),
    )
    found = OnlyFast(columns).decode(column([absent] * 100))
    assert not found.misfits
    assert {(row["id"], row["n"]) for row in found.rows.to_pylist()} == {(1, None)}


def test_members_without_a_column_keep_their_digits() -> None:
    extra = b'{"id":"1","total":1,"x":1e400,"y":[0.12345678901234567890,{"z":1.50}],"u":"\xc3\xbc"}'
    found = decode(extra)
    kept = '{"x":1E+400,"y":[0.12345678901234567890,{"z":1.50}],"u":"ü"}'
    assert found.extras.to_pylist() == [kept]
    long = "7" * 5000
    many = decode(b'{"id":"1","total":1,"count":3,"x":[%s,-4]}' % long.encode())
    assert many.extras.to_pylist() == [f'{{"x":[{long},-4]}}']
    assert many.rows.to_pylist()[0]["count"] == 3
    beyond = decode(b'{"id":"1","total":1,"x":1e9999999999999999999}')
    assert beyond.misfits == {0: "has a number whose exponent is out of range"}


def test_lenient_text_accepts_any_value_as_from_json_does() -> None:
    columns = fields.record(fields.optional("a", fields.STRING))
    strict, lenient = JsonDecoder(columns), JsonDecoder(columns, lenient=True)
    payloads = [b'{"a":"x"}', b'{"a":{"b":1}}', b'{"a":7}']
    assert sorted(strict.decode(column(payloads)).misfits) == [1, 2]
    assert [row["a"] for row in lenient.decode(column(payloads)).rows.to_pylist()] == [
        "x",
        '{"b":1}',
        "7",
    ]


def test_types_without_json_values_are_refused() -> None:
    with pytest.raises(SchemaError, match="no values for a column of type interval"):
        JsonDecoder(fields.record(fields.optional("a", pa.duration("us"))))


CLOCKS = ["10", "10:30", "10:30:59", "10:30:59.1", "10:30:59.12345678", "10.5", "24:00", "10:60:00"]
ZONES = ["Z", "z", "+01", "-0130", "+01:30", "+23:59", "+24:00", "+1", "", " Z"]
MOMENTS = st.datetimes().map(lambda t: t.isoformat() + "Z") | st.builds(
    lambda day, mark, clock, zone: day + mark + clock + zone,
    st.sampled_from(["2020-02-29", "2019-02-29", "1969-12-31", "2020-1-1"]),
    st.sampled_from("Tt _"),
    st.sampled_from(CLOCKS),
    st.sampled_from(ZONES),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {"id": st.text(max_size=4), "total": st.floats(allow_nan=False, allow_infinity=False)},
    optional={
        "count": st.integers(-(2**65), 2**65),
        "paid": st.booleans() | st.none(),
        "at": MOMENTS | st.text(max_size=3),
        "tags": st.lists(st.text(max_size=3) | st.none(), max_size=3),
        "to": st.dictionaries(st.sampled_from(["city", "x"]), st.text(max_size=2)),
        "more": VALUES,
    },
)


@settings(deadline=None, max_examples=150)
@given(st.lists(MEMBERS.map(lambda m: json.dumps(m).encode()) | st.binary(max_size=8), max_size=40))
def test_both_halves_agree(payloads: list[bytes]) -> None:
    vectorised, careful = JsonDecoder(ORDER).decode(column(payloads)), one_by_one(payloads)
    assert vectorised.misfits == careful.misfits
    assert vectorised.rows.to_pylist() == careful.rows.to_pylist()
    assert vectorised.extras.to_pylist() == careful.extras.to_pylist()


@pytest.mark.parametrize("day", ["2020-01-01", "0000-02-29", "0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("rest", [f"T{clock}{zone}" for clock in CLOCKS for zone in ZONES])
def test_time_is_accepted_regardless_of_other_values(day: str, rest: str) -> None:
    message = json.dumps({**GOOD, "at": day + rest}).encode()
    alone, beside = (
        JsonDecoder(ORDER).decode(column([message, *others])) for others in ([], [b"broken"])
    )
    assert alone.rows.to_pylist() == beside.rows.to_pylist()[:1]
    assert alone.misfits.get(0) == beside.misfits.get(0)


@pytest.mark.parametrize(
    ("day", "fits"),
    [
        ("0001-01-01", True),
        ("9999-12-31", True),
        ("0000-12-31", False),
        ("2006-W01-1", False),
        ("2006-02-30", False),
    ],
)
def test_day_is_accepted_regardless_of_other_values(day: str, fits: bool) -> None:
    decoder = JsonDecoder(fields.record(fields.optional("on", fields.DATE)))
    for others in ([], [b"broken"]):
        found = decoder.decode(column([b'{"on":"%s"}' % day.encode(), *others]))
        assert (0 not in found.misfits) == fits
        assert [str(row["on"]) for row in found.rows.to_pylist()[:1] if row] == [day] * fits
