"""Answers of the JetStream API."""

from __future__ import annotations

import pytest

from js_core.answers import read_answer, read_object
from js_core.errors import BadAnswer


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"+OK", b"\xff", b"{", b'"x"'])
def test_what_is_no_json_object_is_no_answer_of_jetstream(text: bytes) -> None:
    with pytest.raises(BadAnswer, match=r"\$JS\.API\.X"):
        read_answer(text, "$JS.API.X")
    with pytest.raises(ValueError, match=r".+"):
        read_object(text)


def test_what_is_too_deep_to_be_read_is_no_answer_of_jetstream() -> None:
    with pytest.raises(BadAnswer, match=r"\$JS\.API\.X"):
        read_answer(b"[" * 100_000, "$JS.API.X")


def test_an_answer_is_read_as_its_members() -> None:
    assert read_answer(b'{"a":1}', "s") == {"a": 1}
    assert read_answer(b'{"a":1,"error":null}', "s") == {"a": 1, "error": None}
