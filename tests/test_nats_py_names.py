"""Names of nats-py: errors name the replacement, and agree with the guide."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import js_async
import js_sync
from twinstream.core.arguments.nats_py_names import ATTRIBUTES
from twinstream.core.arguments.unknown_keywords import KEYWORDS
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


def called(js: Any, function: str) -> Any:
    owner = js if function == "connect" else js.Connection.__new__(js.Connection)
    return getattr(owner, function)


KEYWORD_NAMES = [(function, name) for function, names in KEYWORDS.items() for name in names]


@TWINS
@pytest.mark.parametrize(("function", "name"), KEYWORD_NAMES)
def test_error_for_an_unknown_argument_names_the_right_one(
    js: Any, function: str, name: str
) -> None:
    with pytest.raises(TypeError) as caught:
        called(js, function)("a", **{name: 1})
    begin, _, hint = str(caught.value).partition(": the equivalent of this nats-py name is ")
    assert begin == f"{function}() got an unexpected keyword argument {name!r}"
    assert hint == KEYWORDS[function][name]
    argument = re.match(r"(\w+)=", hint)
    if argument is not None:
        assert argument[1] in inspect.signature(called(js, function)).parameters


@TWINS
@pytest.mark.parametrize("function", KEYWORDS)
def test_an_argument_without_a_hint_is_unknown_as_elsewhere(js: Any, function: str) -> None:
    with pytest.raises(TypeError, match=rf"^{function}\(\) got an .* keyword argument 'verbose'$"):
        called(js, function)("a", verbose=True)


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


@pytest.mark.parametrize(("owner", "name"), [*NAMES, *KEYWORD_NAMES])
def test_the_guide_has_each_name(owner: str, name: str) -> None:
    assert stands_in(name, {**ATTRIBUTES, **KEYWORDS}[owner][name], rows())


# What the guide calls the objects of nats-py, and the classes that stand in their place.
PLACES = {
    "nc": ("Connection",),
    "js": ("JetStream",),
    "msg": ("Message",),
    "sub": ("Consumer", "Subscription"),
}


def test_each_name_of_the_guide_is_there_or_gives_a_hint() -> None:
    given = [
        (place, name)
        for left, right in rows()
        if not right.startswith("none: ")
        for place, name in re.findall(r"(?<![\w.])(nc|js|msg|sub)\.(\w+)", left)
    ]
    assert len(given) > 15
    for place, name in given:
        there = [owner for owner in PLACES[place] if hasattr(getattr(js_sync, owner), name)]
        hinted = [owner for owner in PLACES[place] if name in ATTRIBUTES.get(owner, {})]
        assert there or hinted, f"{place}.{name}"
