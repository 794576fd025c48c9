"""Generate `_index.py` of the SDK: the module of each public name, for imports on first use.

`js_async/__init__.py` imports its public names for type checkers only. This module reads the names
and their modules from these imports.
"""

from __future__ import annotations

import ast
from pathlib import Path

DOC = '''"""The module of each public name of this package, and the packages within it.

Written from the imports in `__init__.py` and the folders by codegen/fronts.py. Edit the imports
instead.
"""

from __future__ import annotations

from typing import Final

'''


def index(front: Path) -> str:
    """Return the text of `_index.py` for the package whose `__init__.py` is `front`.

    An entry keeps the comment of its import.
    """
    text = front.read_text(encoding="utf-8")
    lines = text.splitlines()
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and _is_deferred(node):
            _, mark, words = lines[node.lineno - 1].partition("  # ")
            for each in node.names:
                found[each.name] = f'"{node.module}",{mark}{words}'
    rows = "".join(f'    "{name}": {module}\n' for name, module in sorted(found.items()))
    inits = sorted(front.parent.glob("*/__init__.py"))
    packages = [each.parent.name for each in inits if "__all__" in each.read_text("utf-8")]
    listed = "".join(f'    "{name}",\n' for name in packages)
    return (
        f"{DOC}MODULES: Final[dict[str, str]] = {{\n{rows}}}\n\n"
        f"PACKAGES: Final = (\n{listed})\n"
        '"""The packages above the client."""\n'
    )


def _is_deferred(node: ast.ImportFrom) -> bool:
    """Return whether an import is in the block for type checkers. Only that block is indented."""
    return node.col_offset > 0
