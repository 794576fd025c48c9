"""Import attributes of a package on first access.

Most applications use no locks, backups or schedules, so the import of the package does not load
these features.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

__all__ = ["on_demand"]

# Packages whose names readers look for in the twins: beside the twins, and in them.
_BESIDE: Final = ("twinstream.errors", "twinstream.models")
_WITHIN: Final = (
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


def on_demand(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `modules` maps names to their modules."""

    def find(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{_hint(package, name, modules)}"
            )
        value: object = getattr(import_module(module), name)
        # Python then finds the attribute itself and does not call this function again.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return find, names


def _hint(package: str, name: str, modules: Mapping[str, str]) -> str:
    """Return where a missing name is, or the name that the caller probably means, or ""."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    for other in (*_BESIDE, *(f"{package}.{each}" for each in _WITHIN)):
        if name in getattr(import_module(other), "__all__", ()):
            return f": import it from {other}"
    meant = name.removesuffix("Error")
    near = meant if meant in modules else next(iter(get_close_matches(meant, modules, 1, 0.75)), "")
    return near and f"; did you mean {near!r}?"
