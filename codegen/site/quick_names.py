"""An extension of Sphinx: a name that no object has, such as `int`, is searched for in no time."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain

__all__ = ["setup"]


class _QuickNames(PythonDomain):
    """Python objects, with the set of the last parts of their names.

    Each name in a signature is looked up, and most are of types that have no entry. Sphinx compares
    each of them with the names of all objects.
    """

    _count = 0
    _last_parts: frozenset[str] = frozenset()

    def find_obj(
        self,
        env: Any,
        modname: str,
        classname: str,
        name: str,
        type: str | None,
        searchmode: int = 0,
    ) -> list[tuple[str, ObjectEntry]]:
        if searchmode == 1:
            if len(self.objects) != self._count:
                self._count = len(self.objects)
                self._last_parts = frozenset(each.rpartition(".")[2] for each in self.objects)
            if name.removesuffix("()").rpartition(".")[2] not in self._last_parts:
                return []
        return super().find_obj(env, modname, classname, name, type, searchmode)


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the domain of Python."""
    app.add_domain(_QuickNames, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
