"""Write where each public name of the SDK lives, so that it can be imported on first use.

The front of ``js_async`` imports its names for type checkers only; this reads them from there.
"""

from __future__ import annotations

import ast
from pathlib import Path

DOC = '''"""The module of each public name.

Written from the imports in ``__init__.py`` by codegen/fronts.py. Edit those instead.
"""

from __future__ import annotations

from typing import Final

'''


def index(front: Path) -> str:
    """Return the text of ``_index.py`` for a package's ``__init__.py``."""
    text = front.read_text(encoding="utf-8")
    lines = text.splitlines()
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and _is_deferred(node):
            _, mark, words = lines[node.lineno - 1].partition("  # ")
            for each in node.names:
                found[each.name] = f'"{node.module}",{mark}{words}'
    rows = "".join(f'    "{name}": {module}\n' for name, module in sorted(found.items()))
    return f"{DOC}MODULES: Final[dict[str, str]] = {{\n{rows}}}\n"


def _is_deferred(node: ast.ImportFrom) -> bool:
    """Tell whether an import stands in the block for type checkers."""
    return node.col_offset > 0
