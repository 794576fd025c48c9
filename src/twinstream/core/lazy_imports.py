"""Import attributes of a package on first access.

Most applications use no locks, backups or schedules, so the import of the package does not load
these features.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Final

__all__ = ["on_demand"]

# Packages whose names readers look for in the twins.
_BESIDE: Final = ("twinstream.errors", "twinstream.models")


def on_demand(
    package: str, modules: Mapping[str, str], within: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `modules` maps names to their modules.

    The error for a missing name also looks into the packages `within` this one.
    """

    def find(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint(name)}")
        value: object = getattr(import_module(module), name)
        # Python then finds the attribute itself and does not call this function again.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    def hint(name: str) -> str:
        """Return where a missing name is, or the name that the caller probably means, or ""."""
        if name.startswith("_"):
            return ""
        from difflib import get_close_matches

        for other in (*_BESIDE, *(f"{package}.{each}" for each in within)):
            if name in import_module(other).__all__:
                return f": import it from {other}"
        meant = name.removesuffix("Error")
        near = [meant] if meant in modules else get_close_matches(meant, modules, 1, 0.75)
        return f"; did you mean {near[0]!r}?" if near else ""

    return find, names
