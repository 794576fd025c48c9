"""Type checkers accept correct programs of users and find the errors in wrong ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "typing" / "program.py"
WRONG = {
    number
    for number, line in enumerate(PROGRAM.read_text().splitlines(), start=1)
    if line.endswith("# wrong")
}
BIN = Path(sys.executable).parent


def test_pyright_finds_exactly_what_is_wrong() -> None:
    # The project's settings are strict; naming the file overrides only what is looked at.
    command = [str(BIN / "pyright"), "--outputjson", "--pythonpath", sys.executable, str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAM.parents[3])
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert {item["range"]["start"]["line"] + 1 for item in found} == WRONG, found


def test_mypy_finds_exactly_what_is_wrong() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAM.parents[3])
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert {int(line.split(":")[1]) for line in found} == WRONG, done.stdout
