"""Write docs/api.md, the table of the public API, or check that it is up to date.

python codegen/public_api.py            write docs/api.md
python codegen/public_api.py --check    print the differences; exit with 1 if there are any

The page has each public name of `js_async` and of the packages above it, with the signatures of
the methods. A change of the page is a change of the API, so it is reviewed as one.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import get_args

import attrs

from freshness import keep_fresh
from twinstream.core.arguments.nats_py_names import ATTRIBUTES, GUESSES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
PACKAGES = (
    "backup",
    "coordination",
    "counters",
    "exactly_once",
    "fast_ingest",
    "groups",
    "health",
    "outbox",
    "schedules",
    "workers",
)
"""The packages above the client, in the order of the page."""
RECORDS = ("twinstream.models", "twinstream.records")
"""Modules whose classes are listed without their members."""

HEAD = """# The public API

<!-- Generated from the sources by codegen/public_api.py. -->

These are all public names of `js_async`. `js_sync` has the same names and arguments, without
`await`, and with plain functions as handlers; `from_nats` exists in `js_async` alone. `timeout` is
always the limit of a whole call in seconds. `idle_timeout` is the longest time without progress,
for calls whose length depends on the amount of data. Calls with `[await]` are for
`async with`, and may also be awaited: then close the object. Other iterators are not awaited.

The twins export the errors that programs catch. All errors are in `twinstream.errors`, enumerations
and the parts of infos in `twinstream.models`, and the codecs of buckets in `twinstream.codecs`.
"""


def main(arguments: list[str]) -> int:
    """Write or check the page, and return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python codegen/public_api.py [--check]", file=sys.stderr)
        return 2
    return 0 if keep_fresh(PAGE, page(), check=bool(arguments)) else 1


def page() -> str:
    """Return the text of the page."""
    names = ("js_async", *(f"js_async.{name}" for name in PACKAGES))
    return HEAD + "".join(section(importlib.import_module(name)) for name in names)


def section(module: ModuleType) -> str:
    """Return the part of the page about one package."""
    public = {name: getattr(module, name) for name in sorted(module.__all__)}
    lines = [f"\n## {module.__name__}\n\n{len(public)} names.\n"]
    for title, belongs in (("Functions", is_function), ("Errors", is_error), ("Other", is_plain)):
        chosen = {name: value for name, value in public.items() if belongs(value)}
        if chosen:
            lines += [f"\n| {title} | |\n| --- | --- |\n"]
            lines += [f"| `{name}` | {row(name, value)} |\n" for name, value in chosen.items()]
    for name, value in public.items():
        if isinstance(value, type) and not is_error(value) and not is_plain(value):
            lines.append(f"\n### {name}\n\n{first_sentence(value)}\n\n```text\n")
            lines += [f"{line}\n" for line in members(name, value)]
            lines.append("```\n")
    return "".join(lines)


def is_function(value: object) -> bool:
    """Return whether a value is a function."""
    return inspect.isfunction(value)


def is_error(value: object) -> bool:
    """Return whether a value is a class of exceptions."""
    return isinstance(value, type) and issubclass(value, BaseException)


def is_plain(value: object) -> bool:
    """Return whether a value has no methods of its own: a record, an enumeration or an alias."""
    if not isinstance(value, type):
        return not is_function(value)
    return value.__module__.startswith(RECORDS) or issubclass(value, Enum)


def row(name: str, value: object) -> str:
    """Return the second cell of a table."""
    if is_function(value):
        return f"`{signature(name, value)}`"
    alternatives = [f"`{each.__name__}`" for each in get_args(value) if isinstance(each, type)]
    if alternatives:
        return f"One of {', '.join(alternatives)}."
    text = first_sentence(value)
    if isinstance(value, type) and is_error(value):
        bases = [base for base in value.__mro__[1:] if not base.__name__.startswith("_")]
        return f"a `{bases[0].__name__}`; {text[:1].lower()}{text[1:]}"
    return text


def is_constructed(cls: type) -> bool:
    """Return whether programs call a class: a record, or the root object of a package."""
    of_twin = cls.__module__.startswith("js_async.")
    return not of_twin or next(iter(inspect.signature(cls).parameters), "") == "jet"


def members(name: str, cls: type) -> Iterator[str]:
    """Yield a line for the constructor and for each public attribute of a class."""
    if is_constructed(cls):
        yield signature(name, cls)
    names = [each.__name__ for each in cls.__mro__]
    tables = (table.get(each, {}) for table in (ATTRIBUTES, GUESSES) for each in names)
    hints = {hint for table in tables for hint in table}
    for member in sorted({*dir(cls)} - hints):
        value = inspect.getattr_static(cls, member)
        if member.startswith("_") or isinstance(value, type):
            continue
        bound = getattr(cls, member, value)
        if callable(bound):
            yield f"    {signature(member, bound)}"
        else:
            yield f"    {member}"


def signature(name: str, value: object) -> str:
    """Return the signature of a function or class, without annotations."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return f"{name}(...)"
    parts: list[str] = []
    keywords = False
    for each in found.parameters.values():
        if each.name in {"self", "cls"}:
            continue
        if each.kind is each.KEYWORD_ONLY and not keywords:
            keywords = True
            parts.append("*")
        if each.annotation == "Never":  # arguments that are refused with a hint
            continue
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        keywords |= star == "*"
        parts.append(star + each.name + default(each.default))
    awaited = "await " if inspect.iscoroutinefunction(value) else ""
    if str(found.return_annotation).startswith("Opening["):
        awaited = "[await] "
    return f"{awaited}{name}({', '.join(parts)})"


def default(value: object) -> str:
    """Return a default as text; `...` for a value whose text depends on the version of Python."""
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, Enum) and value is not attrs.NOTHING:
        return f"={value.value!r}"
    simple = value is None or isinstance(value, bool | int | float | str | bytes)
    return f"={value!r}" if simple or value == () else "=..."


def first_sentence(value: object) -> str:
    """Return the first sentence of a docstring, which for an alias is that of its type."""
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    end = text.find(". ")
    return (text if end < 0 else text[: end + 1]).replace("|", "\\|")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
