"""A hunt for tests that fail now and then: `make flaky`, or `python -m tests.flaky --help`.

The whole suite runs several times on a quiet machine, then several times beside busy processes.
Each run has a seed of its own, for the order of hashes. Each test that failed is then repeated by
itself, quiet and beside the load, and a table shows what failed how often. The folder of the hunt
keeps the output of every run and every failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import pytest

# The variable that names the file for the failures of a run.
_FAILURES: Final = "TWINSTREAM_FAILURES"
# A repetition that takes longer has failed (seconds).
_LONGEST_REPETITION: Final = 600
_FOLDER: Final = Path(".venv/flaky")
# It ends with the hunt, even if the hunt is killed.
_BUSY: Final = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append each failure to a file. The hunt loads this module as a plugin of pytest."""
    file = os.environ.get(_FAILURES)
    # The processes of xdist report to the main process, which calls this, too.
    if file and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        found = {"test": report.nodeid, "when": report.when, "text": report.longreprtext}
        found["output"] = "\n".join(f"---- {name}\n{text}" for name, text in report.sections)
        with open(file, "a", encoding="utf-8") as failures:
            failures.write(json.dumps(found) + "\n")


class Run(NamedTuple):
    """A finished run of pytest."""

    code: int
    seconds: float
    failures: list[dict[str, Any]]
    summary: str


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep so many processes busy within the block."""
    busy = [subprocess.Popen([sys.executable, "-S", "-c", _BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def run(command: list[str], log: Path, seed: int, longest: float | None = None) -> Run:
    """Run a command that starts pytest, and return what failed. The output goes to `log`."""
    failures = log.with_suffix(".jsonl")
    # If the hunt itself is run by a test, the run must not take itself for a process of xdist.
    inherited = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_")}
    environment = inherited | {_FAILURES: str(failures), "PYTHONHASHSEED": str(seed)}
    began = time.monotonic()
    with open(log, "wb") as out:
        try:
            done = subprocess.run(
                command, stdout=out, stderr=subprocess.STDOUT, env=environment, timeout=longest
            )
        except subprocess.TimeoutExpired:
            code, summary = -1, f"did not end within {longest} s"
        else:
            code, summary = done.returncode, _last_line(log)
    lines = failures.read_text("utf-8").splitlines() if failures.exists() else []
    return Run(code, time.monotonic() - began, [json.loads(each) for each in lines], summary)


# Each run loads this module as a plugin.
_PYTEST: Final = (sys.executable, "-m", "pytest", "-p", "tests.flaky")


def suite(jobs: int, arguments: tuple[str, ...]) -> list[str]:
    """Return the command that runs the suite as `make test` does."""
    processes = ("--numprocesses", str(jobs), "--no-loadscope-reorder")
    return [*_PYTEST, *processes, *arguments]


def repetition(test: str) -> list[str]:
    """Return the command that runs one test in one process."""
    return [*_PYTEST, "-q", test]


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1].strip("= ") if lines else "no output"


class Hunt:
    """The runs of the suite, and the tests that failed in them."""

    def __init__(self, folder: Path, seed: int, busy: int) -> None:
        self._folder, self._seed, self._busy = folder, seed, busy
        self.failed: dict[str, Counter[str]] = {}
        self.reasons: dict[str, str] = {}

    def whole(self, kind: str, number: int, jobs: int, arguments: tuple[str, ...]) -> None:
        """Run the suite once and note what failed."""
        seed = self._next_seed()
        log = self._folder / f"{kind}-{number}.log"
        with load(self._busy if kind == "loaded" else 0):
            done = run(suite(jobs, arguments), log, seed)
        minutes = done.seconds / 60
        print(f"{kind} run {number}: {minutes:.1f} min, seed {seed}: {done.summary}", flush=True)
        tests = {each["test"] for each in done.failures}
        for failure in done.failures:
            self.reasons.setdefault(failure["test"], _reason(failure["text"]))
        if done.code and not tests:
            tests = {"(the run itself)"}
            self.reasons[next(iter(tests))] = f"exit code {done.code}, see {log}"
        for test in tests:
            self.failed.setdefault(test, Counter())[kind] += 1

    def repeat(self, times: int) -> None:
        """Repeat each test that failed by itself, quiet and beside the load."""
        for number, test in enumerate(self.failed):
            if "::" not in test:
                continue
            for kind, busy in (("alone", 0), ("alone, loaded", self._busy)):
                with load(busy):
                    for each in range(times):
                        log = self._folder / f"test-{number}-{kind.replace(', ', '-')}-{each}.log"
                        done = run(repetition(test), log, self._next_seed(), _LONGEST_REPETITION)
                        self.failed[test][kind] += done.code != 0
                        if not done.code:
                            log.unlink()

    def table(self, quiet: int, loaded: int, repeats: int) -> None:
        """Print what failed, how often and why."""
        columns = {"quiet": quiet, "loaded": loaded, "alone": repeats, "alone, loaded": repeats}
        print("".join(f"{f'{name} of {count}':>20}" for name, count in columns.items()), " test")
        for test, found in sorted(self.failed.items()):
            print("".join(f"{found[name]:>20}" for name in columns), f" {test}")
            print(f"{'':81} {self.reasons[test]}")

    def _next_seed(self) -> int:
        self._seed += 1
        return self._seed


def _reason(text: str) -> str:
    """Return the first line of an error in a traceback of pytest."""
    lines = [each[1:].strip() for each in text.splitlines() if each.startswith("E ")]
    return (lines or text.strip().splitlines() or ["no traceback"])[0][:200]


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--quiet", default=10, show_default=True, help="Runs on the quiet machine.")
@click.option("--loaded", default=5, show_default=True, help="Runs beside busy processes.")
@click.option("--load", "busy", default=16, show_default=True, help="How many are busy.")
@click.option("--repeat", default=50, show_default=True, help="Repetitions of what failed.")
@click.option("--jobs", default=9, show_default=True, help="Processes that run the tests.")
@click.option("--seed", type=int, help="The first seed; drawn by the time by default.")
@click.option("--folder", type=click.Path(path_type=Path), default=_FOLDER, show_default=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def flaky(
    quiet: int,
    loaded: int,
    busy: int,
    repeat: int,
    jobs: int,
    seed: int | None,
    folder: Path,
    arguments: tuple[str, ...],
) -> None:
    """Run the suite many times and print a table of the tests that failed.

    ARGUMENTS go to pytest, for example `-- -m fast`. FOLDER is emptied first.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    hunt = Hunt(folder, time.time_ns() % 1_000_000_000 if seed is None else seed, busy)
    for kind, count in (("quiet", quiet), ("loaded", loaded)):
        for number in range(1, count + 1):
            hunt.whole(kind, number, jobs, arguments)
    if not hunt.failed:
        print(f"no test failed in {quiet} quiet and {loaded} loaded runs")
        return
    hunt.repeat(repeat)
    hunt.table(quiet, loaded, repeat)
    print(f"the output of each failure is in {folder}")
    sys.exit(1)


if __name__ == "__main__":
    flaky()
