"""Values of most classes need the extra `payloads`; those with their own methods do not."""

from __future__ import annotations

import sys
from typing import TypedDict

import pytest
from attrs import frozen

from twinstream.codecs import JsonCodec


@frozen
class Price:
    cents: int


class Order(TypedDict):
    number: int


class WithMethods:
    """A class with the two methods of pydantic models."""

    @classmethod
    def model_validate_json(cls, data: bytes) -> WithMethods:
        assert data == b"{}"
        return cls()

    def model_dump_json(self) -> str:
        return "{}"


@pytest.mark.parametrize(
    ("model", "name"), [(Price, "Price"), (Order, "Order"), (dict[str, int], r"dict\[str, int\]")]
)
def test_the_error_without_the_extra_names_it(
    model: type[object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    JsonCodec(model)
    monkeypatch.setitem(sys.modules, "cattrs", None)
    hint = r"install Twinstream with its extra payloads \(in a clone: pip install '.\[payloads\]'\)"
    with pytest.raises(ModuleNotFoundError, match=rf"^typed\({name}\) needs cattrs.*{hint}") as got:
        JsonCodec(model)
    assert got.value.name == "cattrs"


def test_a_class_with_its_own_methods_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cattrs", None)
    codec = JsonCodec(WithMethods)
    assert codec.encode(WithMethods()) == b"{}"
    assert isinstance(codec.decode(b"{}"), WithMethods)
