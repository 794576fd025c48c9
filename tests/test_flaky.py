"""The hunt for tests that fail now and then finds one that fails every second time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.flaky import flaky

Hunt = Callable[[str], tuple[int, str]]
SOMETIMES = """
from pathlib import Path

def test_passes():
    pass

def test_sometimes():
    seen = Path("seen")
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    assert len(seen.read_text()) % 2 == 0, "not the second time"
"""


@pytest.fixture
def hunt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str]]:
    """Hunt in a project with one file of tests; return the exit code and the output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))

    def run(tests: str) -> tuple[int, str]:
        Path("test_toy.py").write_text(tests)
        options = ["--quiet=1", "--loaded=0", "--load=1", "--repeat=1", "--jobs=0", "--seed=7"]
        options += ["--folder=hunt", "test_toy.py"]
        done = CliRunner().invoke(flaky, options, catch_exceptions=False)
        return done.exit_code, done.output

    return run


def test_a_test_that_fails_sometimes_is_found_and_repeated(hunt: Hunt) -> None:
    code, output = hunt(SOMETIMES)
    assert code == 1
    row = next(line.split() for line in output.splitlines() if "test_sometimes" in line)
    # It failed in the run of the suite, passed alone, and failed beside the load.
    assert row[:4] == ["1", "0", "0", "1"]
    assert "AssertionError: not the second time" in output
    assert "test_passes" not in output
    assert "not the second time" in Path("hunt/quiet-1.log").read_text()


def test_a_run_that_ends_without_a_result_is_reported(hunt: Hunt) -> None:
    code, output = hunt("raise SystemExit('no tests here')")
    assert code == 1
    assert "(the run itself)" in output
