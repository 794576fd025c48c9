"""Every way through the decoder gives the columns, extras and reasons of the plain way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tuned import Tuned
from twinstream.spark.decode import fields
from twinstream.spark.decode.block_refused import BlockRefused
from twinstream.spark.decode.cut_members import Cutter
from twinstream.spark.decode.decode import Decoded, JsonDecoder
from twinstream.spark.decode.text_maps import text_maps

Change = Callable[[int], dict[str, Any]]
NAMES = ["a", "b", "to", "a.b", ":,", 'q"', "ü"]
SCALARS: list[pa.DataType] = [
    fields.STRING,
    fields.LONG,
    fields.DOUBLE,
    fields.BOOLEAN,
    fields.TIMESTAMP,
    fields.INTEGER,
    fields.FLOAT,
    fields.DATE,
    pa.decimal128(6, 2),
    fields.BINARY,
]


@st.composite
def members(draw: st.DrawFn, kinds: st.SearchStrategy[pa.DataType]) -> pa.Field:
    name = draw(st.sampled_from(NAMES))
    if draw(st.integers(0, 5)) == 0:
        return fields.json_text(name, must_exist=draw(st.booleans()))
    kind = draw(kinds)
    exact = draw(st.booleans())
    if draw(st.integers(0, 3)):
        return fields.optional(name, kind, exact=exact)
    return fields.required(name, kind, nullable=draw(st.booleans()), exact=exact)


def records(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.StructType]:
    each = st.lists(members(kinds), min_size=1, max_size=4, unique_by=lambda f: f.name)
    return each.map(pa.struct)


KINDS = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: inner.map(fields.array_of) | inner.map(fields.map_of) | records(inner),
    max_leaves=4,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([1.0, 1.5, 1e300, -0.25])
    | st.sampled_from(["", "x:", "2020-02-29", "2020-02-29T01:02:03Z", "YQ==", "ü", '"a":1', "\n"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*NAMES, "x"]), inner)
    ),
    max_leaves=5,
)


def fitting(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values that a column takes, mostly."""
    match kind:
        case pa.StructType():
            return messages(kind)
        case pa.ListType():
            return st.lists(fitting(kind.value_type), max_size=2)
        case pa.MapType():
            inner = fitting(kind.item_type)
            return st.dictionaries(st.sampled_from(["a", "k"]), inner, max_size=2)
        case fields.STRING:
            return st.text(max_size=3)
        case fields.DOUBLE | fields.FLOAT:
            return st.sampled_from([0, 1, 0.5, 1e10])
        case fields.BOOLEAN:
            return st.booleans()
        case fields.TIMESTAMP:
            return st.sampled_from(["2020-02-29T01:02:03Z", "2020-02-29T01:02:03.1234567+01:00"])
        case fields.DATE:
            return st.just("2020-02-29")
        case fields.BINARY:
            return st.just("YQ==")
        case _:
            return st.integers(-100, 100) | st.just(3.0)


def messages(columns: pa.StructType, *, added: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """Return messages of which most fit."""

    def member(spec: pa.Field) -> st.SearchStrategy[Any]:
        usual = VALUES if fields.is_json(spec) else fitting(spec.type)
        return st.integers(0, 15).flatmap(lambda n: usual if n else VALUES)

    given_ = {f.name: member(f) for f in columns if fields.is_required(f)}
    others = {f.name: member(f) for f in columns if not fields.is_required(f)}
    if added:
        others |= {name: VALUES for name in ("x", "y") if name not in [f.name for f in columns]}
    return st.fixed_dictionaries(given_, optional=others)


LONG = {5: "0.50000000000000001", 6: "0.30000000000000004", 7: "0.12345678901234567"}


def written(message: object, style: int) -> bytes:
    """Return a message as text: with blanks, escapes, long numbers or doubled names."""
    if style == 1:
        return json.dumps(message, indent=1).encode()
    if style == 8:
        return json.dumps(message, indent=1).replace('"a":', '"\\u0061":').encode()
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    if style == 2:
        return text.replace('"a":', '"\\u0061":').encode()
    if style == 3:
        return text[:-1].encode()
    if style == 4:
        return (text[:-1] + ',"a":1,"x":1}').encode()
    if style in LONG:
        return text.replace("0.5", LONG[style]).encode()
    return text.encode()


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.StructType, list[bytes], dict[str, bool]]:
    columns = draw(records(KINDS))
    each = st.builds(
        written, messages(columns, added=draw(st.booleans())), st.integers(0, 30)
    ) | st.sampled_from([b"null", b"\xff{}", b"{}", b'{"x":{"a":1}}', b'{"a":1e999}'])
    patterns = draw(st.lists(each, min_size=1, max_size=8))
    # More messages than one decodes one by one, so that many are unusual in the same way.
    order = draw(st.lists(st.sampled_from(patterns), min_size=1, max_size=60))
    options = {"lenient": draw(st.booleans())}
    return columns, order, options


def plain(decoder: JsonDecoder, payloads: pa.Array) -> Decoded:
    return decoder.one_by_one(payloads)


def assert_same(decoder: JsonDecoder, messages: list[bytes]) -> None:
    payloads = pa.array(messages, pa.binary())
    found, expected = decoder.decode(payloads), plain(decoder, payloads)
    assert found.misfits == expected.misfits
    assert found.extras.to_pylist() == expected.extras.to_pylist()
    assert found.rows.type == expected.rows.type
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    found.rows.validate(full=True)


@settings(deadline=None, max_examples=400)
@given(cases())
def test_all_ways_agree(case: tuple[pa.StructType, list[bytes], dict[str, bool]]) -> None:
    columns, messages, options = case
    decoder = JsonDecoder(columns, **options)
    assert_same(decoder, messages)
    assert_same(decoder, messages)  # with what the first block taught


# Each message is on several lines. The last one is unlike the others.
@pytest.mark.parametrize(
    "last",
    [
        b'{\n"b":1,\n"\\u0061":null}',
        b'{\n"b":1,\n"c":"\xff"}',
        b'{\n"b":1,\n"a":tru}',
        b'{\n"b":1,\n"a":"x\ny"}',
        b'{\n"b":1,\n"x":"x\ny"}',
    ],
)
@pytest.mark.parametrize("count", [0, 3, 40])
def test_messages_on_several_lines(last: bytes, count: int) -> None:
    decoder = JsonDecoder(pa.struct([fields.json_text("a"), fields.json_text("b")]))
    assert_same(decoder, [b'{\n"b":1,\n"a":{"c":\n[1]}}'] * count + [last] + [b'{"b":\n2}'])


@pytest.mark.parametrize("name", ["a", "a/b"])
def test_null_under_a_name_with_an_escape(name: str) -> None:
    decoder = JsonDecoder(pa.struct([fields.json_text(name), fields.json_text("b")]))
    escaped = {"a": rb"\u0061", "a/b": rb"a\/b"}[name]
    messages = [b'{"b":null,"%s":null}' % escaped, b'{"b":1}', b'{"b":"\\u0061","%s":2}' % escaped]
    assert_same(decoder, messages)
    found = decoder.decode(pa.array(messages, pa.binary())).rows.to_pylist()
    assert [row[name] for row in found] == ["null", None, "2"]


ORDER = fields.record(
    fields.required("id", fields.LONG),
    fields.optional("note", fields.STRING),
    fields.optional("at", fields.TIMESTAMP),
    fields.optional("to", fields.record(fields.optional("name", fields.STRING))),
)
WIDE = fields.record(
    *ORDER,
    fields.optional("labels", fields.map_of(fields.STRING)),
    fields.json_text("any"),
    fields.optional("price", pa.decimal128(10, 2)),
)


def usual(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "note": f'"labels":{number}',
        "at": "2026-01-02T03:04:05Z",
        "to": {"name": "x"},
    }


class Counting(JsonDecoder):
    """Counts the messages that it decodes one by one."""

    slow = 0

    def one_by_one(self, payloads: pa.Array) -> Decoded:
        self.slow += len(payloads)
        return super().one_by_one(payloads)


RARE: list[Change] = [
    lambda n: {"coupon": n},
    lambda n: {"to": {"name": "x", "zip": 7}},
    lambda n: {"id": f"{n}"},
    lambda n: {"id": float(n)},
    lambda n: {"id": 2**63 + n},
    lambda n: {"id": None},
    lambda n: {"note": [n]},
    lambda n: {"at": f"in {n} days"},
    lambda n: {"at": "9999-12-31T23:59:59-01"},
]


@pytest.mark.parametrize("change", RARE)
def test_only_rare_messages_go_one_by_one(change: Change) -> None:
    decoder = Counting(ORDER)
    messages = [
        json.dumps({**usual(n), **(change(n) if n % 1000 == 500 else {})}).encode()
        for n in range(10_000)
    ]
    decoder.decode(pa.array(messages))
    assert decoder.slow <= 20
    assert_same(decoder, messages)


COMMON: list[Change] = [
    lambda n: {"coupon": n, "name": "also a member of to"},
    lambda n: {"id": float(n)},
    lambda n: {"to": {"name": "x", "zip": n}},
    lambda n: {"labels": {"to": "a", "labels": f"{n}"}, "any": {"labels": n}, "price": 1.5},
]


@pytest.mark.parametrize("change", COMMON)
def test_what_all_messages_have_is_learned(change: Change) -> None:
    decoder = Counting(WIDE)
    messages = [json.dumps({**usual(n), **change(n)}).encode() for n in range(5000)]
    decoder.decode(pa.array(messages))
    assert decoder.slow <= 20
    assert_same(decoder, messages)


WRITTEN = [
    '{"a": 1}',
    '{"a":1 }',
    '{ "a":1}',
    '{"a":1,\n"b":2}',
    '{"a":"x, y: z"}',
    '{"a":1e5,"b":"x"}',
    '{"a":"b","c":-2E-3}',
    '{"a":0.0000001}',
    '{"a":-0.00000010,"b":0.000001}',
    '{"a":-0,"b":-0.0,"c":1.50}',
    '{"a":12345678901234567890.12345678901234567890}',
    '{"a":"ü\u2028\u00a0"}',
    '{"a":"1e5","b":":2e5"}',
    '{"a":"}{"}',
    '{"a":1,"a":2}',
    '{"a":1 "b":2}',
    '{"a":1e99999}',
    '{"a":"\t"}',
    '{"a":nul}',
    '{"a":01}',
    "{}",
    "-0",
    "1.50",
    '"x y"',
    "null",
    "[1, 2]",
]


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.parametrize("name", ["any", "meta", "labels"])
def test_values_that_were_cut_are_as_if_read_alone(text: str, name: str) -> None:
    usual_text = b'{"id":1,"%s":{"k":"v","x":"y"}}' % name.encode()
    unusual = b'{"id":2,"%s":%s}' % (name.encode(), text.encode())
    decoder = JsonDecoder(WIDE)
    for messages in ([usual_text] * 40, [usual_text] * 20 + [unusual] * 20, [unusual] * 40):
        assert_same(decoder, messages)


MAPS = [
    '{"k":"v"}',
    '{"k":"v","l":"","":"x"}',
    '{"k":"v","k":"w"}',
    '{"k":null}',
    '{"k":"v" ,"l":"w"}',
    '{"k":"v"},{"l":"w"}',
    '{"k":","}',
    '{"k":"},{"}',
    '{"k:":"v"}',
    '{"k":"v";"l":"w"}',
    '{"k":"v","l"}',
]


@pytest.mark.parametrize("text", MAPS)
def test_maps_of_texts_are_as_if_read_alone(text: str) -> None:
    decoder = JsonDecoder(WIDE)
    usual_text, none = b'{"id":1,"labels":{"k":"v"}}', b'{"id":3,"labels":null}'
    unusual = b'{"id":2,"labels":%s}' % text.encode()
    for others in ([usual_text], [usual_text, b'{"id":2}'], [usual_text, none], [unusual]):
        assert_same(decoder, [*others, unusual, *others] * 10)


def test_names_and_values_of_maps_may_be_the_signs_between_them() -> None:
    chance = random.Random(5)
    signs = ["", "a", ":", ",", "::", ",,", ":,", ",:"]
    for _ in range(200):
        maps = [{chance.choice(signs): chance.choice(signs) for _ in range(4)} for _ in range(20)]
        done, left = text_maps([json.dumps(each, separators=(",", ":")) for each in maps])
        simple = [list(each.items()) for at, each in enumerate(maps) if at not in set(left)]
        assert done.to_pylist() == simple


def test_only_unusual_maps_are_converted_one_by_one() -> None:
    columns = fields.record(fields.optional("labels", fields.map_of(fields.STRING)))
    decoder = JsonDecoder(columns)
    texts = ['{"k":"v","l":"w"}', "{}", "null", '{"k": "v"}', '{"k":null}']
    messages = [b'{"labels":%s}' % text.encode() for text in [texts[0]] * 1000 + texts]
    assert_same(decoder, messages)
    done, left = text_maps([texts[0]] * 1000 + texts)
    assert (len(done), left) == (1001, [1001, 1002, 1003, 1004])


def test_names_that_are_data_are_not_learned_without_end(tuned: Tuned) -> None:
    tuned("learned names", 8)
    decoder = Counting(ORDER)
    for start in range(0, 200, 100):
        names = range(start, start + 100)
        assert_same(decoder, [json.dumps({**usual(n), f"n{n}": n}).encode() for n in names])
    slow: list[int] = []
    for name in range(12):  # a member that all messages have is learned, while there is room
        messages = [json.dumps({**usual(n), f"all{name}": n}).encode() for n in range(100)]
        before = decoder.slow
        decoder.decode(pa.array(messages))
        slow.append(decoder.slow - before)
    assert slow[-1] == 100


def test_number_in_the_text_is_not_mistaken_for_a_cut_value() -> None:
    """One message has the first number itself, and lacks the one that replaced its value."""
    forged = '{"id":1,"l\\u0061bels":1000,"to":{"labels":{}}}'
    honest = [json.dumps({**usual(n), "labels": {"k": "v"}}) for n in range(20)]
    lines = [*honest, forged, *honest]
    assert_same(JsonDecoder(WIDE), [line.encode() for line in lines])
    text = "\n".join(lines)
    _, members = Cutter(["labels"]).cut(text)
    member = members["labels"]
    numbers = [*range(member.first, member.first + len(lines))]
    assert list(member.rows(pa.array(numbers, pa.int64()), text)) == [*range(len(lines))]
    numbers[len(honest)] = member.first
    with pytest.raises(BlockRefused) as caught:
        member.rows(pa.array(numbers, pa.int64()), text)
    assert caught.value.rows == [len(honest)]
