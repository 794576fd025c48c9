"""`python -m tests.bench.start`: what a program pays at its start for importing the SDK.

Milliseconds of CPU of an interpreter that runs one statement, more than one that runs nothing; in
turns, with compiled modules at hand as an installed package has them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from statistics import median
from typing import Final

import click

from tests.bench.page import show
from tests.bench.suite import ROOT

STATEMENTS: Final = {
    "js_sync": "import js_sync",
    "js_sync, ready to publish and consume": "from js_sync import connect, JetStream",
    "js_async, ready to publish and consume": "from js_async import connect, JetStream",
    "js_sync, all of its names": "from js_sync import *",
    "twinstream.models, all of its names": "from twinstream.models import *",
    "asyncio alone": "import asyncio",
    "attrs alone": "import attrs",
    "nats-py": "import nats",
    "nats-jetstream": "import nats.jetstream",
    "natsrpy": "import natsrpy",
}


class Interpreter:
    """Starts interpreters that keep compiled modules in a folder of their own."""

    def __init__(self, python: str, folder: str) -> None:
        self._python: Final = python
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._environment: Final = os.environ | {
            "PYTHONPATH": paths,
            "PYTHONPYCACHEPREFIX": folder,
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def can(self, statement: str) -> bool:
        """Tell whether a statement runs here; afterwards its modules are compiled."""
        return self._run(statement) == 0

    def seconds(self, statement: str) -> float:
        """Return the CPU that a new interpreter takes to run a statement and to end."""
        began = _children()
        if self._run(statement):
            raise click.ClickException(f"{self._python} cannot: {statement}")
        return _children() - began

    def _run(self, statement: str) -> int:
        command = [self._python, "-c", statement]
        return subprocess.run(command, env=self._environment, capture_output=True).returncode


def _children() -> float:
    """Return the CPU seconds of all processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def interpreter(python: str = sys.executable) -> Generator[Interpreter]:
    """Return a starter of interpreters; what they compile goes away with it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Interpreter(python, folder)


@click.command()
@click.option("--rounds", default=20, show_default=True, type=click.IntRange(min=3))
@click.option("--python", default=sys.executable, help="The interpreter to start.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def start(rounds: int, python: str, page: bool) -> None:
    """Show the milliseconds of each import."""
    with interpreter(python) as fresh:
        able = {name: each for name, each in STATEMENTS.items() if fresh.can(each)}
        found: dict[str, list[float]] = {name: [] for name in able}
        for _ in range(rounds):
            empty = fresh.seconds("pass")
            for name, statement in able.items():
                found[name].append((fresh.seconds(statement) - empty) * 1e3)
    rows = [[name, f"{median(times):.0f}", f"{min(times):.0f}"] for name, times in found.items()]
    note = f"Median and minimum of {rounds} rounds."
    columns = ["import", "median, ms", "minimum, ms"]
    show("start", columns, rows, page=page, note=note, python=python)


if __name__ == "__main__":
    start()
