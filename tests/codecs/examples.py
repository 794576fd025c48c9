"""The types that codecs encode in tests, with strategies of their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic
from hypothesis import strategies as st

from twinstream.codecs import (
    BytesCodec,
    CloudEvent,
    CloudEventCodec,
    Codec,
    JsonSchemaCodec,
    MsgspecCodec,
    TextCodec,
    codec_for,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


Number = NewType("Number", int)


@attrs.frozen
class Line:
    item: str
    price: Decimal
    colour: Colour = Colour.RED


@attrs.frozen
class Order:
    number: Number
    lines: list[Line]
    id: UUID | None = None
    at: datetime | None = None
    kind: Literal["sale", "gift"] = "sale"
    notes: dict[str, str] = attrs.Factory(dict)
    by_number: dict[int, float] = attrs.Factory(dict)


@dataclass
class Tree:
    name: str
    day: date
    children: list[Tree] = field(default_factory=list)
    tags: frozenset[str] = frozenset()


class Place(TypedDict):
    x: float
    y: float


class Customer(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")
    balance: Decimal
    since: datetime


class Point(msgspec.Struct, frozen=True):
    x: int
    y: float
    label: str | None = None


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "required": ["number"],
    "$defs": {"line": {"type": "string", "maxLength": 5}},
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WHOLE = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
TIMES = st.datetimes(timezones=st.just(UTC))
LINES = st.builds(Line, TEXT, DECIMALS, st.sampled_from(Colour))
ORDERS = st.builds(
    Order,
    WHOLE,
    st.lists(LINES, max_size=3),
    st.none() | st.uuids(),
    st.none() | TIMES,
    st.sampled_from(["sale", "gift"]),
    st.dictionaries(TEXT, TEXT, max_size=3),
    st.dictionaries(WHOLE, FLOATS, max_size=3),
)
TREES = st.recursive(
    st.builds(Tree, TEXT, st.dates(), tags=st.frozensets(TEXT, max_size=3)),
    lambda inner: st.builds(Tree, TEXT, st.dates(), st.lists(inner, max_size=2)),
    max_leaves=4,
)
CUSTOMERS = st.builds(
    lambda name, balance, since: Customer(fullName=name, balance=balance, since=since),
    TEXT,
    st.decimals(-1000, 1000, places=2),
    TIMES,
)
POINTS = st.builds(Point, WHOLE, FLOATS, st.none() | TEXT)
PLAIN = st.recursive(
    st.none() | st.booleans() | WHOLE | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
NAMES = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=1, max_size=9)
RESERVED = ("id", "source", "type", "subject", "data", "time", "specversion", "dataschema")
VISIBLE = TEXT.filter(bool)


def events(data: st.SearchStrategy[Any]) -> st.SearchStrategy[CloudEvent[Any]]:
    return st.builds(
        CloudEvent,
        id=VISIBLE,
        source=VISIBLE,
        type=VISIBLE,
        data=data,
        time=st.none() | TIMES,
        subject=st.none() | VISIBLE,
        datacontenttype=st.just("application/json"),
        extensions=st.dictionaries(NAMES.filter(lambda each: each not in RESERVED), TEXT),
    )


CASES: dict[str, tuple[Codec[Any], st.SearchStrategy[Any]]] = {
    "bytes": (BytesCodec(), st.binary()),
    "text": (TextCodec(), TEXT),
    "annotated": (codec_for(Annotated[str, TextCodec()]), TEXT),
    "str": (codec_for(str), TEXT),
    "int": (codec_for(int), st.integers()),
    "any": (codec_for(dict), st.dictionaries(TEXT, PLAIN, max_size=3)),
    "attrs": (codec_for(Order), ORDERS),
    "list of attrs": (codec_for(list[Order]), st.lists(ORDERS, max_size=2)),
    "dataclass": (codec_for(Tree), TREES),
    "TypedDict": (codec_for(Place), st.fixed_dictionaries({"x": FLOATS, "y": FLOATS})),
    "UUID": (codec_for(UUID), st.uuids()),
    "Decimal": (codec_for(Decimal), DECIMALS),
    "datetime": (codec_for(datetime), TIMES),
    "union": (codec_for(int | str | None), st.none() | WHOLE | TEXT),
    "optional": (codec_for(Order | None), st.none() | ORDERS),
    "keys": (
        codec_for(dict[UUID, dict[Decimal, Colour]]),
        st.dictionaries(
            st.uuids(), st.dictionaries(DECIMALS, st.sampled_from(Colour), max_size=2), max_size=2
        ),
    ),
    "tuple": (codec_for(tuple[int, ...]), st.lists(WHOLE, max_size=3).map(tuple)),
    "set": (codec_for(set[int]), st.sets(WHOLE, max_size=3)),
    "pydantic": (codec_for(Customer), CUSTOMERS),
    "list of pydantic": (codec_for(list[Customer]), st.lists(CUSTOMERS, max_size=2)),
    "struct": (codec_for(Point), POINTS),
    "mapping of structs": (codec_for(dict[str, Point]), st.dictionaries(TEXT, POINTS, max_size=2)),
    "msgspec of attrs": (MsgspecCodec(Line), LINES),
    "schema": (
        JsonSchemaCodec(SCHEMA),
        st.fixed_dictionaries({"number": WHOLE, "lines": st.lists(TEXT.map(lambda t: t[:5]))}),
    ),
    "structured event": (codec_for(CloudEvent[Order]), events(ORDERS)),
    "binary event": (CloudEventCodec(Order, "binary"), events(ORDERS)),
}
