"""Codecs: which types they refuse, what their errors say, media types and CloudEvents."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import attrs
import pytest

from tests.codecs.examples import SCHEMA, Customer, Line, Order, Point
from twinstream.codecs import (
    BytesCodec,
    CloudEvent,
    CloudEventCodec,
    JsonCodec,
    JsonSchemaCodec,
    MsgspecCodec,
    PydanticCodec,
    TextCodec,
    codec_for,
)
from twinstream.codecs.cloud_event_text import from_header, to_header
from twinstream.core.payloads.payloads import payloads_of
from twinstream.errors import BadArgument, BadPayload, PayloadError
from twinstream.records.headers import Headers


class Strange:
    pass


@attrs.frozen
class Holder:
    inner: list[Strange]


@attrs.frozen
class Unresolved:
    inner: Missing  # type: ignore[name-defined]  # noqa: F821


# ---- refused when the codec is made


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Strange, "cannot encode Strange: Strange is not a type of JSON: use a class of attrs"),
        (Holder, "cannot encode Holder.inner: Strange is not a type of JSON"),
        (Unresolved, "Unresolved: an annotation cannot be resolved: name 'Missing'"),
        (list[complex], r"cannot encode list\[complex\]: complex is not"),
        (dict[tuple[int, int], int], r"a key of dict\[.*not a name of a JSON object"),
        ("Order", "a type or a codec is required, got the text 'Order'"),
    ],
)
def test_a_type_that_cannot_be_encoded_is_refused_at_once(model: Any, text: str) -> None:
    with pytest.raises(BadArgument, match=text):
        codec_for(model)


@pytest.mark.parametrize(
    ("kind", "model", "text"),
    [
        (JsonCodec, Point, "Point is a struct of msgspec: use MsgspecCodec"),
        (JsonCodec, list[Customer], "Customer is a class with its own JSON: use PydanticCodec"),
        (MsgspecCodec, Strange, "msgspec cannot encode Strange: it has a Strange"),
        (MsgspecCodec, list[Customer], r"msgspec cannot encode list\[Customer\]: .* Customer"),
        (PydanticCodec, list[Strange], r"pydantic cannot encode list\[Strange\]"),
    ],
)
def test_each_codec_refuses_the_types_of_others(kind: Any, model: Any, text: str) -> None:
    with pytest.raises(BadArgument, match=text):
        kind(model)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "objekt"}, r"the schema: not a JSON Schema: \$\.type"),
        ({"$ref": "https://example.org/x.json"}, "the reference 'https.*' is not in the schema"),
        ({"items": {"$ref": "#/$defs/none"}}, "the reference '#/.*' is not in the schema"),
        ("missing.json", "missing.json: no JSON Schema"),
    ],
)
def test_an_invalid_schema_is_refused(schema: Any, text: str) -> None:
    with pytest.raises(BadArgument, match=text):
        JsonSchemaCodec(schema)


def test_a_schema_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(SCHEMA))
    codec = JsonSchemaCodec(path)
    assert codec.decode(codec.encode({"number": 1})) == {"number": 1}
    with pytest.raises(BadArgument, match=r"a value does not fit Order: .*\$\.lines\[1\]"):
        codec.encode({"number": 1, "lines": ["tea", "too long"]})
    path.write_text("[]")
    with pytest.raises(BadArgument, match="a JSON Schema is an object, got list"):
        JsonSchemaCodec(path)


# ---- the choice


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (bytes, BytesCodec),
        (str, JsonCodec),
        (Order, JsonCodec),
        (UUID, JsonCodec),
        (list[Order], JsonCodec),
        (Customer, PydanticCodec),
        (list[Customer] | None, PydanticCodec),
        (Point, MsgspecCodec),
        (dict[str, Point], MsgspecCodec),
        (CloudEvent[Order], CloudEventCodec),
        (Annotated[str, "a note", TextCodec()], TextCodec),
        (Annotated[str, "a note"], JsonCodec),
    ],
)
def test_the_codec_for_a_type(model: Any, kind: type) -> None:
    assert type(codec_for(model)) is kind


def test_a_codec_is_taken_as_it_is() -> None:
    codec = TextCodec()
    assert codec_for(codec) is codec


# ---- what does not fit


@pytest.mark.parametrize(
    ("model", "data", "path", "reason"),
    [
        (Line, b'{"item": "tea", "price": 1}', "$.price", "invalid value for Decimal: got int"),
        (Line, b'{"item": "tea"}', "$.price", "required member 'price' is missing"),
        (Line, b'{"item": 1, "price": "1", "colour": "red"}', "$.item", "got int"),
        (list[bool], b"[true, 1]", "$[1]", "invalid value for bool: got int"),
        (int, b"true", "", "got bool"),
        (Customer, b'{"fullName": "a"}', "$.balance", "Field required (and 1 more errors)"),
        (list[Point], b'[{"x": 1, "y": "2"}]', "$[0].y", "Expected `float`, got `str`"),
        (TextCodec(), b"\xff", "", "not UTF-8"),
        (int, b"{" * 100_000, "", ""),
        (int, b"[" * 100_000, "", "nested too deeply"),
        (float, b"NaN", "", "NaN is not a JSON number"),
    ],
)
def test_an_error_names_the_path_and_the_reason(
    model: Any, data: bytes, path: str, reason: str
) -> None:
    with pytest.raises(PayloadError) as caught:
        payloads_of(model).decode(data, Headers(), "a")
    assert caught.value.path == path
    assert reason in caught.value.reason
    assert isinstance(caught.value, BadPayload)


def test_an_error_survives_pickling_and_copying() -> None:
    error = PayloadError("$.a", "bad\x1b").for_type("Order").in_message("orders.1", "ORDERS", 7)
    text = "stream ORDERS, seq 7, subject orders.1: the payload does not fit Order at $.a: bad"
    assert str(error) == text + r"\u001b"
    for made in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(made), made.seq, made.path) == (str(error), 7, "$.a")


@pytest.mark.parametrize("model", [Line, list[Line], Customer, Point, TextCodec(), bytes])
def test_a_value_of_another_type_is_not_published(model: Any) -> None:
    with pytest.raises(BadArgument, match=r"^subject a: typed\("):
        payloads_of(model).encode(Strange(), None, "a")


def test_errors_of_an_own_codec_become_errors_of_the_client() -> None:
    class Broken:
        content_type = ""

        def encode(self, value: Any) -> Any:
            if value:
                raise LookupError("mine")
            return value

        def decode(self, data: bytes) -> Any:
            raise LookupError("mine")

    payloads = payloads_of(Broken())
    with pytest.raises(BadArgument, match=r"typed\(Broken\): LookupError: mine"):
        payloads.encode(1, None, "a")
    with pytest.raises(BadArgument, match="a value must be bytes, got int"):
        payloads.encode(0, None, "a")
    with pytest.raises(PayloadError, match="does not fit Broken: LookupError: mine") as caught:
        payloads.decode(b"", Headers(), "a")
    assert isinstance(caught.value.__cause__, LookupError)


# ---- media types


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        ("application/json", True),
        ("APPLICATION/JSON; charset=utf-8", True),
        ("application/vnd.acme+json", True),
        ("", True),
        ("text/plain", False),
        ("application/xml;type=application/json", False),
    ],
)
@pytest.mark.parametrize("name", ["Content-Type", "content-type", "CONTENT-TYPE"])
def test_the_media_type_is_read_in_any_case(name: str, found: str, fits: bool) -> None:
    payloads = payloads_of(int)
    headers = Headers([("Other", "1"), (name, found)])
    if fits:
        assert payloads.decode(b"7", headers, "a") == 7
    else:
        with pytest.raises(PayloadError, match=f"Content-Type is {found.partition(';')[0]}"):
            payloads.decode(b"7", headers, "a")


def test_the_header_of_the_caller_is_kept() -> None:
    payloads = payloads_of(int)
    assert payloads.encode(7, None, "a")[1] == {"Content-Type": "application/json"}
    mine = {"content-type": "application/vnd.acme+json"}
    assert payloads.encode(7, mine, "a")[1] == mine
    several = Headers([("A", "1"), ("A", "2")])
    pairs = (("A", "1"), ("A", "2"), ("Content-Type", "application/json"))
    merged = payloads.encode(7, several, "a")[1]
    assert isinstance(merged, Headers)
    assert merged.pairs == pairs
    assert payloads_of(bytes).encode(b"x", None, "a") == (b"x", None)


# ---- CloudEvents


def test_the_percent_encoding_of_the_binding() -> None:
    text, coded = "Euro € 😀", "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert to_header(text) == coded
    assert from_header("ce-id", coded) == text
    assert to_header('/a:b "%~') == "/a:b%20%22%25~"
    assert from_header("ce-id", '"a \\"b\\" %c3%bc"') == 'a "b" ü'
    for bad in ("%", "%4", "%zz", "%FF"):
        with pytest.raises(PayloadError):
            from_header("ce-id", bad)


EVENT: CloudEvent[Any] = CloudEvent(id="1", source="/shop", type="order.placed", data={"n": 1})


def test_the_binary_form() -> None:
    codec: CloudEventCodec[Any] = CloudEventCodec(dict, "binary", deduplicate=True)
    data, headers = codec.encode_message(attrs.evolve(EVENT, extensions={"trace": "a b"}))
    assert data == b'{"n":1}'
    assert headers == {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "/shop",
        "ce-type": "order.placed",
        "ce-datacontenttype": "application/json",
        "ce-trace": "a%20b",
        "Nats-Msg-Id": "1",
    }
    other = {name.upper(): value for name, value in headers.items()}
    found = codec.decode_message(data, other, "a")
    assert (found.data, found.extensions) == ({"n": 1}, {"trace": "a b"})
    with pytest.raises(BadArgument, match="the binary form needs headers"):
        codec.encode(EVENT)


@pytest.mark.parametrize("form", ["structured", "binary"])
def test_both_forms_are_read(form: Any) -> None:
    reader: CloudEventCodec[Any] = CloudEventCodec(dict, form)
    for written in ("structured", "binary"):
        writer: CloudEventCodec[Any] = CloudEventCodec(dict, written)  # type: ignore[arg-type]
        data, headers = writer.encode_message(EVENT)
        assert reader.decode_message(data, headers, "a").data == {"n": 1}


def test_structured_events_of_others() -> None:
    plain = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "n": 7, "b": True}
    codec: CloudEventCodec[Any] = CloudEventCodec(bytes)
    data = json.dumps({**plain, "data_base64": "AAE=", "time": "2026-01-02T03:04:05Z"}).encode()
    for headers in ({}, {"content-type": "Application/CloudEvents+JSON; charset=UTF-8"}):
        found = codec.decode_message(data, headers, "a")
        assert (found.data, found.extensions) == (b"\x00\x01", {"n": "7", "b": "true"})
        assert found.time is not None


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"specversion": "0.3"}, "$.specversion"),
        ({"id": ""}, "$.id"),
        ({"source": None}, "$.source"),
        ({"type": 1.5}, "$.type"),
        ({"time": "yesterday"}, "$.time"),
        ({"time": "2026-01-02T03:04:05"}, "$.time"),
        ({"data_base64": "?"}, "$.data_base64"),
        ({"data": 1, "data_base64": "AA=="}, "$.data"),
        ({"data": {"number": "x"}}, "$.data"),
        ({"Bad_Name": "x"}, "$"),
    ],
)
def test_an_invalid_event_names_the_attribute(change: dict[str, Any], path: str) -> None:
    plain = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    with pytest.raises(PayloadError) as caught:
        CloudEventCodec(dict[str, int]).decode(json.dumps(plain | change).encode())
    assert caught.value.path.startswith(path)


def test_a_batch_of_events_is_refused() -> None:
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    with pytest.raises(PayloadError, match=r"expected application/cloudevents\+json"):
        CloudEventCodec(dict).decode_message(b"[]", headers, "a")


@pytest.mark.parametrize(
    "wrong",
    [{"id": ""}, {"source": None}, {"time": "now"}, {"extensions": {"A": "1"}}, {"subject": ""}],
)
def test_an_invalid_event_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        CloudEvent(**({"id": "1", "source": "s", "type": "t"} | wrong))
