"""Codecs of which the library is not installed: the error names the extra."""

from __future__ import annotations

import sys

import pytest
from attrs import frozen

from twinstream.codecs import JsonCodec, JsonSchemaCodec
from twinstream.codecs.json_converter import _converter
from twinstream.errors import BadArgument

EXTRA = r"install Twinstream with its extra payloads \(in a clone: pip install '.\[payloads\]'\)"


@frozen
class Price:
    cents: int


def test_json_of_classes_needs_cattrs(monkeypatch: pytest.MonkeyPatch) -> None:
    _converter.cache_clear()
    monkeypatch.setitem(sys.modules, "cattrs.preconf.json", None)
    with pytest.raises(BadArgument, match=f"JsonCodec needs cattrs: {EXTRA}"):
        JsonCodec(Price)
    monkeypatch.undo()
    assert JsonCodec(Price).encode(Price(420)) == b'{"cents":420}'


def test_schemas_need_jsonschema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(BadArgument, match=f"JSON Schemas need jsonschema: {EXTRA}"):
        JsonSchemaCodec({"type": "object"})
