"""The docstrings of attributes: a text after an assignment in the body of a class."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

__all__ = ["attribute_docs"]


def attribute_docs(cls: type) -> dict[str, str]:
    """Return the attributes of a class and of its base classes, with their docstrings.

    An attribute without a docstring has an empty one.
    """
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        # An attribute that a class sets again has the docstring of its base class.
        found |= {name: text or found.get(name, "") for name, text in _of_class(each).items()}
    return found


@cache
def _of_class(cls: type) -> dict[str, str]:
    body = _definitions(cls.__module__).get(cls.__qualname__)
    if body is None:
        return {}
    found: dict[str, str] = {}
    for each in body.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            found |= _of_body(each.body, own=True)
    return found | _of_body(body.body)


@cache
def _definitions(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a module; of a package, those of its modules, too.

    An error says that it is from the package `twinstream.errors`, whichever module defines it.
    """
    file = Path(getattr(sys.modules[module], "__file__", None) or "")
    files = file.parent.glob("*.py") if file.name == "__init__.py" else [file]
    found = (ast.parse(each.read_text()).body for each in files if each.suffix == ".py")
    return {each.name: each for body in found for each in body if isinstance(each, ast.ClassDef)}


def _of_body(statements: list[ast.stmt], *, own: bool = False) -> dict[str, str]:
    """Return what a body assigns; with `own`, only attributes of `self`."""
    found: dict[str, str] = {}
    for before, after in pairwise([*statements, ast.Pass()]):
        name = _assigned(before, own)
        if name is not None:
            found[name] = inspect.cleandoc(_text(after) or "")
    return found


def _assigned(statement: ast.stmt, own: bool) -> str | None:
    """Return the public name that a statement assigns, to the class or to `self`."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    if own and isinstance(target, ast.Name):
        return None
    name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "_")
    return None if name.startswith("_") else name


def _text(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else None
    return None
