"""The Python examples of the README and of all guides pass both type checkers, in strict mode."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.examples import ROOT, blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BIN = Path(sys.executable).parent
# nats-py and PySpark have incomplete annotations, and examples handle only what they produce.
TOLERATED = ("reportUnknown", "reportMatchNotExhaustive")


@pytest.fixture
def modules(tmp_path: Path) -> list[str]:
    """Write each example into a module, and return their paths."""
    written: list[str] = []
    for page in PAGES:
        for number, code in enumerate(blocks(page, "python")):
            if "pyspark" in code and find_spec("pyspark") is None:
                continue
            module = tmp_path / f"{page.stem.replace('-', '_').lower()}_{number}.py"
            module.write_text(code, "utf-8")
            written.append(str(module))
    assert len(written) > 80
    return written


def test_the_examples_pass_mypy(modules: list[str]) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_examples_pass_pyright(modules: list[str]) -> None:
    command = [str(BIN / "pyright"), "--outputjson", "--pythonpath", sys.executable, *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error"]
    assert [each for each in errors if not each["rule"].startswith(TOLERATED)] == []
