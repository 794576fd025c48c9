"""`inspect.iscoroutinefunction` is True for each public method that has to be awaited.

Frameworks ask it whether to await a function, and documentation tools how to show it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from tests.test_twins import bare, modules

# What a plain function returns with one of these names in its annotation has to be awaited.
# Classes with an `__await__` that only explains what to write instead are no coroutines.
AWAITABLE = {"Awaitable", "Future", "Task"} | {
    value.__name__
    for module in modules("js_async")
    for value in vars(module).values()
    if inspect.isclass(value) and issubclass(value, Coroutine)
}


def functions(twin: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions and methods with public names of a twin and the packages above it."""
    for module in modules(twin):
        if ".runtime" in module.__name__:
            continue
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value):
                for member, each in vars(value).items():
                    method = bare(each)
                    if inspect.isfunction(method) and not member.startswith("_"):
                        yield f"{module.__name__}.{name}.{member}", method


def returned(function: Callable[..., Any]) -> set[str]:
    """Return the names in the annotation of what a function returns."""
    return set(re.findall(r"\w+", str(inspect.signature(function).return_annotation)))


def test_what_has_to_be_awaited_is_a_coroutine_function() -> None:
    plain = {
        name: each for name, each in functions("js_async") if not inspect.iscoroutinefunction(each)
    }
    assert len(plain) > 200
    assert [name for name, each in plain.items() if returned(each) & AWAITABLE] == []


def test_methods_of_both_kinds_are_found() -> None:
    assert {"Coroutine", "Opening"} <= AWAITABLE
    found = {name for name, each in functions("js_async") if inspect.iscoroutinefunction(each)}
    opened = {name for name, each in functions("js_async") if "Opening" in returned(each)}
    assert {
        "connection.connect",
        "kv.bucket.KeyValue.watch",
        "coordination.lock.Leasing.acquire",
    } <= {name.removeprefix("js_async.") for name in opened}
    assert {"js_async.kv.bucket.KeyValue.get", "js_async.health.check.check_health"} <= found


def test_no_function_of_the_blocking_twin_is_one() -> None:
    assert [name for name, each in functions("js_sync") if inspect.iscoroutinefunction(each)] == []
