"""The public names of installed packages and of Go modules, read from their files.

`python names.py PACKAGE...` prints the facts and names of each package as JSON. It needs the
standard library alone, so that it can run in an environment that has the packages.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageMetadata, PackageNotFoundError, distribution
from pathlib import Path

# A private package, but the only place of the stubs of natsrpy.
_STUBS = "_natsrpy_rs"
_GO = re.compile(r"^(?:func (?:\(\w+ \*?\w+\) )?|\t{1,2}|type )([A-Z]\w*)(\(|\[| )", re.MULTILINE)


def of_package(name: str) -> dict[str, object] | None:
    """Return the version, the size, the requirements and the names of an installed package."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    files = [Path(str(each.locate())) for each in found.files or []]
    size = sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc")
    needed = [each for each in found.requires or [] if "extra ==" not in each]
    public = [path for path in files if path.suffix in (".py", ".pyi") and is_public(path)]
    return {
        "version": found.version,
        "python": found.metadata["Requires-Python"],
        "licence": found.metadata["License-Expression"] or _classified(found.metadata),
        "bytes": size,
        "requires": [re.split(r"[ <>=!;\[]", each)[0] for each in needed],
        "names": sorted(of_python(public)),
    }


def _classified(metadata: PackageMetadata) -> str:
    classifiers = metadata.get_all("Classifier") or []
    return next((each.split(" :: ")[-1] for each in classifiers if "License ::" in each), "")


def is_public(path: Path) -> bool:
    """Return whether programs may import a file's module."""
    inner = path.parts[path.parts.index("site-packages") + 1 :]
    parts = [part for part in inner if part != _STUBS]
    return not any(re.match(r"_(?!_)", part) for part in parts)


def of_python(files: Iterable[Path]) -> set[str]:
    """Return `Class`, `Class.field`, `Class.method(arguments)` and `function(arguments)`."""
    found: set[str] = set()
    for path in files:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
                found |= {f"{node.name}.{member}" for member in _defined(node.body)}
            found |= set(_defined([node]))
    return {name for name in found if not re.search(r"(^|\.)_", name)}


def of_go(folder: Path) -> set[str]:
    """Return the exported names of a module: functions and methods end with a bracket."""
    found: set[str] = set()
    for path in folder.rglob("*.go"):
        if not path.name.endswith("_test.go") and "examples" not in path.parts:
            text = path.read_text("utf-8")
            found |= {name + end.strip(" [") for name, end in _GO.findall(text)}
    return found


def _defined(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
            yield f"{node.name}({', '.join(name for name in given if name != 'self')})"
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


if __name__ == "__main__":
    print(json.dumps({name: of_package(name) for name in sys.argv[1:]}))
