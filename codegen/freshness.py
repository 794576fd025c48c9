"""Write a generated file, or show how it differs from what would be written."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def keep_fresh(path: Path, text: str, *, check: bool) -> bool:
    """Write a file that is not up to date. Return whether it is up to date afterwards.

    With `check`, the file is not written: the differences are printed, and False is returned.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old == text:
        return True
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return True
    name = path.relative_to(ROOT).as_posix()
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (fresh)"
    )
    sys.stdout.writelines(lines)
    return False
