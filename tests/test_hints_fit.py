"""The calls in the hints of errors: their names and arguments are those of the real calls."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import js_async
import js_sync
from twinstream import models
from twinstream.core.arguments.nats_py_names import ATTRIBUTES, GUESSES
from twinstream.core.arguments.unknown_keywords import ARGUMENTS, KEYWORDS

TWINS = pytest.mark.parametrize("js", [js_async, js_sync])
# Objects that hints name in words, and what the calls in hints return.
OWNERS = {
    " a stream": "Stream",
    " a consumer": "Consumer",
    " the connection": "Connection",
    " the JetStream": "JetStream",
    "publisher()": "Publisher",
}
RETURNED = {"bind_stream": "Stream", "bind_consumer": "Consumer"}
# What hints use that is not of this project.
FOREIGN = {"encode"}


def calls(hint: str) -> Iterator[ast.Call]:
    """Yield the calls in a hint, with 0 for each argument without a value."""
    code = re.sub(r"=(?=[,)])", "=0", hint)
    for start in re.finditer(r"(?<![\w.)])[A-Za-z_][\w.]*\(", code):
        for end in range(len(code), start.start(), -1):
            try:
                parsed = ast.parse(code[start.start() : end], mode="eval").body
            except SyntaxError:
                continue
            yield from (each for each in ast.walk(parsed) if isinstance(each, ast.Call))
            break


def called(js: Any, owner: str, hint: str, call: ast.Call) -> Any:
    """Return what a call of a hint calls."""
    function = call.func
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Call):
            made = called(js, owner, hint, function.value)
            kind = getattr(js, RETURNED.get(made.__name__, ""), made)
            return getattr(kind, function.attr)
        package = ast.unparse(function.value)
        return getattr(import_module(f"{js.__name__}.{package}"), function.attr)
    assert isinstance(function, ast.Name)
    owners = [owner, *(kind for words, kind in OWNERS.items() if words in hint)]
    places = [*(getattr(js, each, None) for each in owners), js, models]
    return next(getattr(each, function.id) for each in places if hasattr(each, function.id))


def problems(js: Any, owner: str, hint: str) -> list[str]:
    found = []
    for call in calls(hint):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in FOREIGN:
            continue
        target = called(js, owner, hint, call)
        is_method = inspect.isfunction(target) and target is not js.connect
        given = [0] * (len(call.args) + is_method)
        signature = inspect.signature(target)
        # `**_unknown` only serves the error for an unknown argument.
        own = [each for each in signature.parameters.values() if each.name != "_unknown"]
        try:
            signature.replace(parameters=own).bind_partial(
                *given, **{each.arg or "": 0 for each in call.keywords}
            )
        except TypeError as error:
            found.append(f"{ast.unparse(call)}: {error}")
    return found


HINTS = [
    (owner, hint)
    for table in (ATTRIBUTES, GUESSES)
    for owner, names in table.items()
    for hint in names.values()
] + [
    (function.rpartition(".")[0] or "Connection", hint)
    for table in (KEYWORDS, ARGUMENTS)
    for function, names in table.items()
    for hint in names.values()
]


@TWINS
@pytest.mark.parametrize(("owner", "hint"), HINTS)
def test_the_calls_in_a_hint_have_the_arguments_of_the_real_calls(
    js: Any, owner: str, hint: str
) -> None:
    assert problems(js, owner, hint) == []


def test_a_wrong_argument_in_a_hint_is_found() -> None:
    for hint, said in {
        "next(timeout)": "too many positional arguments",
        "fetch(wait=, batch=)": "unexpected keyword argument 'batch'",
        "bind_stream(stream_name).purge(seq=)": "unexpected keyword argument 'seq'",
    }.items():
        owner = "JetStream" if hint.startswith("bind") else "Consumer"
        [problem] = problems(js_sync, owner, hint)
        assert said in problem
