"""Headers: a multi-map without loss, its bytes, and inline statuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.wire.headers import encode_headers, parse_status
from twinstream.errors import BadArgument
from twinstream.records.headers import Headers, appended

NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1
)
VALUES = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])).map(
    lambda text: text.strip(" \t")
)


@given(st.lists(st.tuples(NAMES, VALUES)))
def test_headers_survive_encoding_and_parsing(pairs: list[tuple[str, str]]) -> None:
    headers = Headers(pairs)
    block = encode_headers(headers)
    if not pairs:
        assert block == b""
        return
    assert block.startswith(b"NATS/1.0\r\n")
    assert block.endswith(b"\r\n\r\n")
    assert Headers.parse(block) == headers
    assert Headers.parse(block).pairs == tuple(pairs)


@given(st.dictionaries(NAMES, st.lists(VALUES, min_size=1)))
def test_several_values_under_a_name(given_: dict[str, list[str]]) -> None:
    block = encode_headers(given_)
    found = Headers.parse(block) if block else Headers()
    assert {name: found.get_all(name) for name in found} == given_
    assert all(found[name] == values[0] for name, values in given_.items())
    assert len(found) == len(given_)


@given(st.binary(max_size=200))
def test_no_bytes_of_a_block_break_the_reading(noise: bytes) -> None:
    block = b"NATS/1.0\r\n" + noise + b"\r\n\r\n"
    found = Headers.parse(block)
    code, text = parse_status(block)
    assert (code, text) == (0, "")
    # Any line is kept under some name.
    lines = [line for line in (noise + b"\r\n").split(b"\r\n") if line]
    assert len(found.pairs) == len(lines)


def test_bytes_that_are_no_utf8_survive() -> None:
    found = Headers.parse(b"NATS/1.0\r\nName: \xff\xfe ok\r\n\r\n")
    assert encode_headers(found) == b"NATS/1.0\r\nName: \xff\xfe ok\r\n\r\n"


def test_case_and_order_are_kept() -> None:
    found = Headers.parse(b"NATS/1.0\r\nb: 1\r\nB: 2\r\na: 3\r\nb:4\r\nc:\r\n\r\n")
    assert found.pairs == (("b", "1"), ("B", "2"), ("a", "3"), ("b", "4"), ("c", ""))
    assert (found["b"], found.get("B"), found.get_all("b"), found["c"]) == (
        "1",
        "2",
        ["1", "4"],
        "",
    )
    assert list(found) == ["b", "B", "a", "c"]
    assert found.get_all("none") == []
    assert "none" not in found
    with pytest.raises(KeyError):
        found["none"]


def test_equality_and_show() -> None:
    headers = Headers([("a", "1"), ("a", "2")])
    assert headers == Headers([("a", "1"), ("a", "2")])
    assert headers != Headers([("a", "2"), ("a", "1")])
    assert Headers([("a", "1")]) == {"a": "1"}
    assert repr(headers) == "Headers([('a', '1'), ('a', '2')])"
    with pytest.raises(TypeError):
        hash(headers)


@pytest.mark.parametrize("name", ["", "a:b", "a b", "a\r\nEvil", "ä", "a\t", "\x7f", "a\0"])
def test_names_that_would_change_the_block_are_refused(name: str) -> None:
    with pytest.raises(BadArgument, match="header name"):
        encode_headers({name: "v"})


@pytest.mark.parametrize("value", ["a\r\nEvil: 1", "a\nb", "a\rb", "a\0b"])
def test_values_that_would_change_the_block_are_refused(value: str) -> None:
    with pytest.raises(BadArgument, match="header N"):
        encode_headers({"N": value})
    with pytest.raises(BadArgument, match="header N"):
        encode_headers({"N": ["fine", value]})


@pytest.mark.parametrize("value", [1, None, b"bytes", ["fine", 1]])
def test_values_that_are_no_text_are_refused(value: object) -> None:
    with pytest.raises(BadArgument, match="must be text"):
        encode_headers({"N": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("name", [1, None, b"N", ("N",)])
def test_names_that_are_no_text_are_refused(name: object) -> None:
    with pytest.raises(BadArgument, match="header name"):
        encode_headers({name: "v"})  # type: ignore[dict-item]


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"header N: .+ is not valid Unicode"):
        encode_headers({"N": "\ud800"})


@pytest.mark.parametrize("headers", ["a:b", [("a", "b")], 5])
def test_what_is_no_mapping_is_refused(headers: object) -> None:
    with pytest.raises(BadArgument, match="headers must be Headers or a mapping of names, got"):
        encode_headers(headers)  # type: ignore[arg-type]


def test_nothing_is_no_block() -> None:
    assert encode_headers(None) == encode_headers({}) == encode_headers(Headers()) == b""


@given(
    st.integers(100, 599),
    st.sampled_from([" ", "  ", "   ", " \t"]),
    st.sampled_from(["", "Request Timeout", "a  b", "x" * 100]),
    st.sampled_from(["", " ", "\t "]),
)
def test_status_lines_with_odd_spacing(code: int, gap: str, text: str, tail: str) -> None:
    line = f"NATS/1.0{gap}{code}{' ' + text if text else ''}{tail}\r\n\r\n".encode()
    assert parse_status(line) == (code, text)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"NATS/1.0\r\n\r\n", (0, "")),
        (b"NATS/1.0 \r\n\r\n", (0, "")),
        (b"NATS/1.0 OK\r\n\r\n", (0, "")),
        (b"NATS/1.0 50x No\r\n\r\n", (0, "")),
        (b"NATS/1.0 -1\r\n\r\n", (0, "")),
        (b"NATS/1.0 5030\r\n\r\n", (0, "")),
        (b"NATS/1.0 " + b"5" * 5000 + b"\r\n\r\n", (0, "")),
        (b"NATS/1.0 503\r\n\r\n", (503, "")),
        (b"NATS/1.0 503\r\nNats-Subject: a\r\n\r\n", (503, "")),
        (b"NATS/1.0503 glued\r\n\r\n", (503, "glued")),
        (b"NATS/1.0 409 \xff\xfe\r\n\r\n", (409, "\ufffd\ufffd")),
    ],
)
def test_status_lines(line: bytes, wanted: tuple[int, str]) -> None:
    assert parse_status(line) == wanted


@pytest.mark.parametrize(
    ("block", "value"),
    [
        (b"NATS/1.0\r\nSize: 5\r\n\r\n", "5"),
        (b"NATS/1.0\r\nSize: 9\r\nA: b\r\nSize: 5\r\nPin: x\r\n\r\n", "5"),
        # The stored block has no empty line, so the server's line continues the last line.
        (b"NATS/1.0\r\nSize: 9\r\nA: bSize: 5\r\n\r\n", "5"),
        (b"NATS/1.0\r\nSize: 9\r\nA bSize: 5\r\n\r\n", "5"),
        (b"NATS/1.0\r\nOther: 9\r\n\r\n", None),
    ],
)
def test_last_header_of_a_name_is_the_one_that_the_server_appended(block, value) -> None:
    assert appended(Headers.parse(block), "Size") == value


def test_headers_and_dictionaries_are_merged_into_dictionaries() -> None:
    headers = Headers([("a", "1"), ("b", "2"), ("b", "3")])
    merged = headers | {"b": "4", "c": "5"}
    assert type(merged) is dict
    assert merged == {"a": "1", "b": "4", "c": "5"}
    assert {"b": "4", "c": "5"} | headers == {"a": "1", "b": "2", "c": "5"}
    assert headers | headers == dict(headers)
