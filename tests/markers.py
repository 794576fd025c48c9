"""The kind of each test: `fast`, `long`, `server` or `spark`.

No test declares its kind. The kind follows from the test's file, from its fixtures, and from the
names that its code uses, also in the functions of tests/ that it calls.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import pytest

import twinstream.testing.server
from tests.s3_server import S3Server
from twinstream.testing import NatsCluster, NatsServer

# What needs no server but takes seconds even on a quiet machine.
LONG = (
    "tests/core/coordination/test_lease_machine.py",
    "tests/core/consume/test_ordered_machine.py",
    "tests/core/consume/test_pull_machine.py",
    "tests/fuzz/",
    "tests/models/test_many.py",
    "tests/models/test_typing.py",
    "tests/test_completion.py",
    "tests/test_flaky.py",
    "tests/test_guides_typing.py",
    "tests/test_site.py::test_every_link_and_anchor_resolves",
    "tests/test_twins.py::test_the_generated_twin_is_fresh",
)
HAS_SPARK = importlib.util.find_spec("pyspark") is not None
# What imports PySpark, in tests/.
NEED_SPARK = ("spark", "test_errors_survive.py", "test_site.py")
STARTERS = (NatsServer, NatsCluster, S3Server)
# They are in a program, too, that a test runs in a process of its own.
WORDS = tuple(each.__name__ for each in STARTERS)


# Of each function, class and table that was searched, by its id: itself, and whether it starts one.
# The tests of a function differ only in arguments, and most share a few helpers.
_SEARCHED: dict[int, tuple[Any, bool]] = {}


def kind(item: pytest.Item, java: tuple[str, ...]) -> str:
    """Return the marker of a test; `java` has prefixes of the paths of tests that need Java."""
    if item.nodeid.startswith(java):
        return "spark"
    if any(starts_servers(each) for each in _functions(item)):
        return "server"
    return "long" if item.nodeid.startswith(LONG) else "fast"


def starts_servers(function: Any) -> bool:
    """Return whether a function, or a function in tests/ that it uses, starts a server."""
    seen: dict[int, Any] = {}
    found = _starts_servers(function, seen)
    if not found:
        # Neither does anything that the search has reached.
        _SEARCHED.update((key, (thing, False)) for key, thing in seen.items())
    return found


def _functions(item: pytest.Item) -> Iterator[Any]:
    """Yield the function of a test and the functions of all its fixtures."""
    yield getattr(item, "function", None)
    found = getattr(item, "_fixtureinfo", None)
    for definitions in found.name2fixturedefs.values() if found else ():
        # The last one is used; it may ask for the one of the same name before it.
        yield from (each.func for each in definitions)


def _starts_servers(thing: Any, seen: dict[int, Any]) -> bool:
    if any(thing is each for each in STARTERS):
        return True
    thing = getattr(thing, "__wrapped__", thing)
    thing = getattr(thing, "__func__", thing)
    if not isinstance(thing, FunctionType | type | dict | list | tuple) or id(thing) in seen:
        return False
    if id(thing) in _SEARCHED:
        return _SEARCHED[id(thing)][1]
    seen[id(thing)] = thing
    found = any(_starts_servers(each, seen) for each in _uses(thing))
    if found:
        _SEARCHED[id(thing)] = thing, True
    return found


def _uses(thing: Any) -> Iterator[Any]:
    """Yield the parts of a table and the members of a class, and what the code of a function names.

    A program in a string that starts a server counts as one.
    """
    if isinstance(thing, dict | list | tuple):
        yield from thing.values() if isinstance(thing, dict) else thing
    elif not thing.__module__.startswith(("tests", "conftest")):
        return
    elif isinstance(thing, type):
        yield from (each for base in thing.__mro__ for each in vars(base).values())
    else:
        for code in _codes(thing.__code__):
            texts = (each for each in code.co_consts if isinstance(each, str))
            yield from (STARTERS[0] for text in texts if any(word in text for word in WORDS))
            yield from (thing.__globals__.get(name) for name in code.co_names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions within it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


@contextmanager
def no_servers() -> Iterator[None]:
    """Within the block, starting a server of this package raises an AssertionError."""

    def refused(version: str | None = None) -> Any:
        raise AssertionError(
            "a test that is marked `fast` starts a nats-server: tests/markers.py did not see it"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twinstream.testing.server, "find_binary", refused)
        yield
