"""Names of nats-py: errors name the replacement, and agree with the guide."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import js_async
import js_sync
from twinstream.core.arguments.nats_py_names import ATTRIBUTES
from twinstream.core.consume.metadata import Metadata

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "from-nats-py.md"
TWINS = pytest.mark.parametrize("js", [js_async, js_sync])
NAMES = [(owner, name) for owner, names in ATTRIBUTES.items() for name in names]


def owner_of(js: Any, name: str) -> type:
    return Metadata if name == "Metadata" else getattr(js, name)  # type: ignore[no-any-return]


@TWINS
@pytest.mark.parametrize(("owner", "name"), NAMES)
def test_error_for_an_unknown_attribute_names_the_right_one(js: Any, owner: str, name: str) -> None:
    kind = owner_of(js, owner)
    found = kind.__new__(kind)
    with pytest.raises(AttributeError, match=f"{owner}.*{name}.* nats-py") as caught:
        getattr(found, name)
    assert ATTRIBUTES[owner][name] in str(caught.value)
    assert caught.value.name == name
    assert not hasattr(found, name)
    assert not hasattr(kind, name)
    assert getattr(found, name, 7) == 7


def test_hints_keep_copies_and_completion_right() -> None:
    metadata = Metadata("S", "c", 1, 2, 3, 4, 5)
    for same in (
        copy.copy(metadata),
        copy.deepcopy(metadata),
        pickle.loads(pickle.dumps(metadata)),
    ):
        assert same == metadata
    for js in (js_async, js_sync):
        for owner, names in ATTRIBUTES.items():
            kind = owner_of(js, owner)
            assert not set(dir(kind.__new__(kind))) & set(names)
            # Looking a name up takes the way that the interpreter specialises.
            assert kind.__getattribute__ is object.__getattribute__
            assert not hasattr(kind, "__getattr__")


def rows() -> list[tuple[str, str]]:
    """Return the two columns of the guide's table of calls."""
    guide = GUIDE.read_text(encoding="utf-8")
    section = guide.partition("## Call by call")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return [(left, right) for left, right in found if left != "nats-py" and "---" not in left]


def stands_in(name: str, hint: str, table: list[tuple[str, str]]) -> bool:
    # The words of a hint that are code.
    words = re.findall(r"`([^`]+)`", hint) + [
        word
        for word in re.findall(r"[A-Za-z_]\w+(?=\(|=|\b)", hint)
        if "_" in word or f"{word}(" in hint or f"{word}=" in hint
    ]
    return any(
        re.search(rf"\b{name}\b", left) and any(word in right for word in words or [hint])
        for left, right in table
    )


@pytest.mark.parametrize(("owner", "name"), NAMES)
def test_the_guide_has_each_name(owner: str, name: str) -> None:
    assert stands_in(name, ATTRIBUTES[owner][name], rows())


# What the guide calls the objects of nats-py, and the classes that stand in their place.
PLACES = {"js": ("JetStream",), "msg": ("Message",), "sub": ("Consumer", "Subscription")}


def test_each_name_of_the_guide_is_there_or_gives_a_hint() -> None:
    given = [
        (place, name)
        for left, _ in rows()
        for place, name in re.findall(r"(?<![\w.])(js|msg|sub)\.(\w+)", left)
    ]
    assert len(given) > 15
    for place, name in given:
        there = [owner for owner in PLACES[place] if hasattr(getattr(js_sync, owner), name)]
        hinted = [owner for owner in PLACES[place] if name in ATTRIBUTES.get(owner, {})]
        assert there or hinted, f"{place}.{name}"
