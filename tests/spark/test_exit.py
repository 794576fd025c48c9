"""What a process of the tests writes at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_nothing_follows_the_summary_of_pytest() -> None:
    """A library may write at exit, when pytest no longer captures: DuckDB reports its leaks."""
    file = "tests/spark/pipeline/test_vacuum.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only"]
    done = subprocess.run([*command, file], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert "tests collected" in done.stdout.splitlines()[-1]
