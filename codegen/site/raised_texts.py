"""The texts of errors, as the statements that raise them have them."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import twinstream.errors

__all__ = ["constants", "raised_texts", "text_of"]

_SOURCE: Final = Path(twinstream.errors.__file__).parents[2]
_FOLDERS: Final = ("js_async", "twinstream")
# Commands have their own messages, and the scripted server of tests is not used by programs.
_LEFT_OUT: Final = ("twinstream/cli/", "twinstream/testing/")
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")


def raised_texts(module: str = "") -> dict[str, list[str]]:
    """Return the texts of each class of errors, in alphabetical order.

    Names in braces stand for values. With `module`, only the texts of this module are returned.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for path in _files(module):
        for name, text in _of_file(path):
            found[name].add(text)
    return {name: sorted(texts) for name, texts in found.items()}


def _files(module: str) -> list[Path]:
    if module:
        spec = importlib.util.find_spec(module)
        return [Path(str(spec and spec.origin))]
    paths = [path for folder in _FOLDERS for path in sorted((_SOURCE / folder).rglob("*.py"))]
    inside = [(path, path.relative_to(_SOURCE).as_posix()) for path in paths]
    return [path for path, name in inside if not name.startswith(_LEFT_OUT)]


@cache
def _of_file(path: Path) -> tuple[tuple[str, str], ...]:
    tree = ast.parse(path.read_text("utf-8"))
    known = constants(tree)
    own = (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef))
    passed = (found for each in own for found in _calls(each, each.name, known))
    return (*_calls(tree, "", known), *passed)


def constants(tree: ast.Module) -> dict[str, str]:
    """Return the numbers that a module names, by their names."""
    found: dict[str, str] = {}
    for each in tree.body:
        if isinstance(each, ast.AnnAssign | ast.Assign) and isinstance(each.value, ast.Constant):
            target = each.target if isinstance(each, ast.AnnAssign) else each.targets[0]
            if isinstance(target, ast.Name) and isinstance(each.value.value, int):
                found[target.id] = f"{each.value.value:,}"
    return found


def _calls(tree: ast.AST, owner: str, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the class and each text of the calls that make an error.

    Inside a class, `owner` is its name: a call of `__init__` passes the text to the base class.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name == "__init__" and owner:
            name = owner
        elif name not in twinstream.errors.__all__ and not name.endswith("Error"):
            continue
        if name[:1].isupper():
            for text in _texts(node.args, known):
                yield name, text


def _texts(arguments: list[ast.expr], known: Mapping[str, str]) -> Iterator[str]:
    for each in arguments:
        text = text_of(each, known)
        # A name, such as that of an option, is no text of an error.
        if " " in text and len(_PLACEHOLDER.sub("", text)) > 8:
            yield " ".join(text.split())


def text_of(node: ast.expr, known: Mapping[str, str]) -> str:
    """Return the text of an expression, with names in braces for its values.

    `known` are constants, which are shown as their values. Other expressions have no text.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(each, known) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left, known) + text_of(node.right, known)
    return ""


def _part(node: ast.expr, known: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    text = ast.unparse(node.value)
    words = re.findall(r"[A-Za-z]\w*", text)
    return known.get(text, f"{{{words[-1].strip('_') if words else 'value'}}}")
