"""The twins have equal names, signatures and docstrings, and the generated twin is up to date."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import js_async
import js_sync
from tests.sources import PACKAGES as ABOVE
from tests.sources import tree_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("twinstream.core", "js_async", "js_sync", "twinstream.testing")

# What asyncio alone has, each with its reason.
ONLY_ASYNC = {"from_nats": "nats-py has no blocking client to stand on"}
# Methods of the seam that one side alone has: callbacks of asyncio's protocol.
SEAM_ONLY = {"Link": {"received", "filled", "ended"}}

# What threads need to sleep and to wake each other; an event loop has it built in.
THREADS_ONLY = {
    "Detachable",
    "Gate",
    "LONGEST",
    "Releasable",
    "Waker",
    "close_copy",
    "closed",
    "keep_until_closed",
    "open_gate",
}

RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
RENAMED["__anext__"] = "__next__"
PROTOCOLS = ("__enter__", "__exit__", "__iter__", "__next__", "__init__")


def modules(package: str) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        yield importlib.import_module(found.name)


def plain(annotation: Any) -> str:
    """Return an annotation without its asynchronous parts."""
    text = str(annotation).replace("js_async", "js_sync").replace("Async", "")
    # What the blocking twin returns is open.
    text = re.sub(r"\bOpening\[(.*)\]", r"\1", text)
    return " | ".join(dict.fromkeys(text.split(" | ")))


def signature(function: Any) -> list[tuple[str, str, str, str]]:
    found = inspect.signature(function)
    parameters = [
        (each.name, str(each.kind), str(each.default), plain(each.annotation))
        for each in found.parameters.values()
    ]
    returns = ("return", "", "", plain(found.return_annotation))
    return [*parameters, returns]


def members(cls: type) -> dict[str, Any]:
    """Return the public members and protocol methods of a class, by the names in `js_sync`."""
    found = {RENAMED.get(name, name): value for name, value in vars(cls).items()}
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") or name in PROTOCOLS
    }


def bare(member: Any) -> Any:
    """Return the function behind a property, class method or static method."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def test_both_offer_the_same_names() -> None:
    assert set(js_async.__all__) - set(ONLY_ASYNC) == set(js_sync.__all__)


def offered(package: str) -> dict[str, Any]:
    """Return the public objects of a twin, and those of the packages above it by their paths."""
    found = importlib.import_module(package)
    objects = {name: getattr(found, name) for name in found.__all__ if name not in ONLY_ASYNC}
    for each in ABOVE:
        module = importlib.import_module(f"{package}.{each}")
        objects.update({f"{each}.{name}": getattr(module, name) for name in module.__all__})
    return objects


BLOCKING, ASYNCHRONOUS = offered("js_sync"), offered("js_async")


def test_packages_above_both_offer_the_same_names() -> None:
    assert BLOCKING.keys() == ASYNCHRONOUS.keys()
    assert {"counters.Counters", "backup.restore_stream"} <= BLOCKING.keys()


def test_errors_and_values_are_the_same_classes() -> None:
    for name, ours in BLOCKING.items():
        if getattr(ours, "__module__", "").startswith("twinstream.core"):
            assert ASYNCHRONOUS[name] is ours


TWINS = [name for name, each in BLOCKING.items() if each.__module__.startswith("js_s")]


def test_there_are_twins_to_compare() -> None:
    assert {"Connection", "JetStream", "Stream", "Consumer", "Message", "Messages"} <= set(TWINS)


@pytest.mark.parametrize("name", TWINS)
def test_signatures_are_equal(name: str) -> None:
    ours, theirs = BLOCKING[name], ASYNCHRONOUS[name]
    if not inspect.isclass(ours):
        assert signature(ours) == signature(theirs)
        return
    for cls in (ours, theirs):
        for member in list(vars(cls)):
            # Some attributes of records are created when they are first looked up.
            getattr(cls, member, None)
    mine, its = members(ours), members(theirs)
    assert mine.keys() == its.keys()
    for member in mine:
        assert type(mine[member]) is type(its[member]), member
        left, right = bare(mine[member]), bare(its[member])
        if callable(left):
            assert signature(left) == signature(right), f"{name}.{member}"


def definitions(body: list[ast.stmt]) -> list[str]:
    """Return the public names that statements define, in order."""
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [each.id for each in node.targets if isinstance(each, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def seam(package: str, half: str) -> ast.Module:
    return tree_of(ROOT / "src" / package / "runtime" / f"{half}.py")


@pytest.mark.parametrize("half", ["concurrency", "socket_link"])
def test_both_seams_hold_the_same_names_in_the_same_order(half: str) -> None:
    asynchronous = importlib.import_module(f"js_async.runtime.{half}")
    blocking = importlib.import_module(f"js_sync.runtime.{half}")

    assert asynchronous.__all__ == blocking.__all__
    left = definitions(seam("js_async", half).body)
    right = definitions(seam("js_sync", half).body)
    both = set(left) & set(right)
    assert [name for name in left if name in both] == [name for name in right if name in both]
    # What only one side defines, the other imports under the same name.
    for name in (set(left) ^ set(right)) - THREADS_ONLY:
        assert hasattr(asynchronous, name), name
        assert hasattr(blocking, name), name


@pytest.mark.parametrize(
    ("half", "name"),
    [("socket_link", "Link"), *(("concurrency", name) for name in ("Signal", "Task", "Forks"))],
)
def test_the_classes_of_both_seams_are_equal(half: str, name: str) -> None:
    def methods(package: str) -> list[str]:
        [found] = [
            node
            for node in seam(package, half).body
            if isinstance(node, ast.ClassDef) and node.name == name
        ]
        only = SEAM_ONLY.get(name, set())
        return [each for each in definitions(found.body) if each not in only]

    assert methods("js_async") == methods("js_sync")


def test_the_generated_twin_is_fresh() -> None:
    command = [sys.executable, "codegen/twin.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# Also in prose: a docstring that speaks of event loops would puzzle whoever blocks.
WORDS = re.compile(
    r"\b(async\w*|await\w*|coroutines?|Async[A-Z]\w*|__a(?:enter|exit|iter|next)__)\b"
)
# A line may compare the twins; the seam's head and the one that names both forms do.
COMPARES = ("js_async", "event loops")


def test_no_word_of_the_other_twin_remains() -> None:
    for path in sorted((ROOT / "src/js_sync").rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = WORDS.search(line)
            compares = any(word in line for word in COMPARES) or "asyncio" in line
            assert found is None or compares, f"{path}:{number}: {line}"


def public(package: str) -> Iterator[tuple[str, Any]]:
    """Yield every public object of a package, and the public members of its classes."""
    for module in modules(package):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if getattr(value, "__module__", "").partition(".")[0] != package:
                continue
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for member, each in vars(value).items():
                    function = bare(each)
                    if not member.startswith("_") and inspect.isfunction(function):
                        yield f"{module.__name__}.{name}.{member}", function


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_public_is_documented(package: str) -> None:
    for module in modules(package):
        assert module.__doc__, module.__name__
    naked = [name for name, value in public(package) if not inspect.getdoc(value)]
    assert not naked


@pytest.mark.parametrize("package", PACKAGES)
def test_lists_of_names_are_sorted_and_true(package: str) -> None:
    for module in modules(package):
        names = list(getattr(module, "__all__", ()))
        assert names == sorted(names, key=order), module.__name__
        assert len(set(names)) == len(names), module.__name__
        for name in names:
            assert hasattr(module, name), f"{module.__name__}.{name}"


def test_lists_of_names_hold_what_other_modules_import() -> None:
    trees = {path: tree_of(path) for path in (ROOT / "src").rglob("*.py")}
    listed = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts): ast.literal_eval(node.value)
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if isinstance(node.value, ast.List)
    }
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in listed:
                unlisted = {alias.name for alias in node.names} - set(listed[node.module])
                assert unlisted <= THREADS_ONLY, f"{path} imports {unlisted} of {node.module}"


def order(name: str) -> tuple[int, str]:
    """Return the sort key: constants, then classes, then functions, as ruff sorts them."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name


def test_every_enum_value_of_a_batch_end_is_documented() -> None:
    source = inspect.getsource(js_sync.BatchEnd)
    assert issubclass(js_sync.BatchEnd, enum.Enum)
    assert source.count('"""') == 2 * (len(js_sync.BatchEnd) + 1)
