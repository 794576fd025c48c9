"""Responses of the JetStream API."""

from __future__ import annotations

import pytest

from twinstream.core.wire.response import read_answer, read_json, read_object, write_json
from twinstream.errors import BadArgument, InvalidResponse


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"+OK", b"\xff", b"{", b'"x"'])
def test_what_is_no_json_object_is_no_answer_of_jetstream(text: bytes) -> None:
    with pytest.raises(InvalidResponse, match=r"\$JS\.API\.X"):
        read_answer(text, "$JS.API.X")
    with pytest.raises(ValueError, match=r".+"):
        read_object(text)


def test_what_is_too_deep_to_be_read_is_no_answer_of_jetstream() -> None:
    with pytest.raises(InvalidResponse, match=r"\$JS\.API\.X"):
        read_answer(b"[" * 100_000, "$JS.API.X")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"config": {"description": "a\ud800"}}, r"config\.description: 'a\\ud800' is not valid"),
        ({"subjects": ["a", "\udfff"]}, r"subjects\[1\]: "),
        ({"metadata": {"\ud800": "v"}}, r"metadata: '\\ud800' is not valid"),
        ({"\ud800": 1}, "a key: "),
    ],
)
def test_text_that_utf_8_cannot_hold_is_named(members: dict[str, object], said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        write_json(members)


def test_members_are_written_without_blanks() -> None:
    assert write_json({"a": ["ü", 1, None], "b": {}}) == '{"a":["ü",1,null],"b":{}}'.encode()


def test_what_is_too_deep_is_not_json() -> None:
    for text in ("[" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(text)


def test_an_answer_is_read_as_its_members() -> None:
    assert read_answer(b'{"a":1}', "s") == {"a": 1}
    assert read_answer(b'{"a":1,"error":null}', "s") == {"a": 1, "error": None}
