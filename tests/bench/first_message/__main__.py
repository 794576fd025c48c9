"""`python -m tests.bench.first_message`: from the start of a process to its first message.

Each program connects to a server that runs, publishes one message, fetches it, acknowledges it and
ends. The time is that of the whole process, from its start to its end, with compiled modules at
hand as an installed package has them. All programs run once in each round, every second round in
reverse; what counts is the median of the ratios to nats-py within a round. After each run the
stream's consumer is asked whether the message was acknowledged.

The programs of `bound` use a stream and a consumer that exist. Those of `made` create both
first, and read the server's answers. `twinstream stream ls` lists one stream.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

import js_sync
from tests.bench.page import show
from tests.bench.suite import ROOT
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

PROGRAMS: Final = Path(__file__).with_name("programs")
WAYS: Final = ("bound", "made")
CLIENTS: Final = {"js_sync": None, "js_async": None, "nats_py": "nats", "natsio": "natsio"}
"""The clients, and the module that each peer needs."""

BASE: Final = "nats_py"
LIST: Final = "twinstream stream ls"
COMMAND: Final = (
    "import sys; from twinstream.cli.main import main; sys.argv[0] = 'twinstream'; main()"
)

PATIENCE: Final = 30
"""Seconds that one program may take."""


class Programs:
    """Starts programs with one interpreter; what they compile stays in a folder."""

    def __init__(self, python: str, tree: Path, folder: str, server: NatsServer) -> None:
        self._python: Final = python
        self._url: Final = server.url
        self._environment: Final = os.environ | {
            "PYTHONPATH": str(tree / "src"),
            "PYTHONPYCACHEPREFIX": folder,
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._nc: Final = js_sync.connect(server.url)
        self._jet: Final = self._nc.jetstream()

    def close(self) -> None:
        """Close the connection that checks the programs."""
        self._nc.close()

    def can(self, module: str | None) -> bool:
        """Tell whether the interpreter has what a client needs."""
        command = [self._python, "-c", f"import {module or 'sys'}"]
        done = subprocess.run(command, env=self._environment, capture_output=True, check=False)
        return done.returncode == 0

    def prepare(self, name: str) -> None:
        """Create the stream of a program, and its consumer unless the program does that."""
        way, _, client = name.partition(" ")
        if name == LIST:
            return
        stream = self._jet.create_stream(
            StreamConfig(name=f"{way}-{client}", subjects=[f"{way}.{client}"])
        )
        if way == "bound":
            stream.create_consumer(ConsumerConfig(durable_name="first", ack_policy="explicit"))

    def run(self, name: str) -> dict[str, float]:
        """Return the milliseconds of one program, on the clock and of CPU."""
        way, _, client = name.partition(" ")
        if name == LIST:
            return self._measure([self._python, "-c", COMMAND, "stream", "ls", "-s", self._url])
        if way == "made":
            self._jet.delete_stream(f"{way}-{client}")
        source = str(PROGRAMS / f"{way}_{client}.py")
        arguments = [self._url, f"{way}-{client}", f"{way}.{client}", "first"]
        found = self._measure([self._python, source, *arguments])
        self._check(f"{way}-{client}")
        return found

    def _measure(self, command: Sequence[str]) -> dict[str, float]:
        used, began = _children(), time.perf_counter()
        done = subprocess.run(
            command,
            env=self._environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        wall, cpu = time.perf_counter() - began, _children() - used
        if done.returncode:
            raise click.ClickException(f"{' '.join(command)}: {done.stderr[-1500:]}")
        return {"wall": wall * 1e3, "cpu": cpu * 1e3}

    def _check(self, stream: str) -> None:
        """Wait until every message of a stream is acknowledged, which the process has sent."""
        deadline = time.monotonic() + PATIENCE
        consumer = self._jet.get_consumer(stream, "first")
        while True:
            stored = self._jet.get_stream(stream).cached_info.state.last_seq
            if stored and consumer.info().ack_floor.stream_seq == stored:
                return
            if time.monotonic() > deadline:
                raise click.ClickException(f"{stream}: a message was not acknowledged")


def _children() -> float:
    """Return the CPU seconds of all processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _rows(found: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    rows: list[list[str]] = []
    for name, runs in found.items():
        way = name.partition(" ")[0]
        base = found.get(f"{way if way in WAYS else WAYS[0]} {BASE}")
        row = [name]
        for kind in ("wall", "cpu"):
            row.append(f"{median(run[kind] for run in runs):.0f}")
            row.append(_ratio(runs, base, kind))
        rows.append(row)
    return rows


def _ratio(runs: list[dict[str, float]], base: list[dict[str, float]] | None, kind: str) -> str:
    """Return the median of the ratios within the rounds."""
    if not base:
        return "-"
    pairs = zip(runs, base, strict=True)
    return f"{median(run[kind] / other[kind] for run, other in pairs):.2f}"


@click.command()
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=3))
@click.option("--python", default=sys.executable, help="The interpreter that runs the programs.")
@click.option("--only", multiple=True, help="Programs, such as `bound js_sync`.")
@click.option("--tree", default=ROOT, type=click.Path(path_type=Path), help="Whose `src` to run.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def first_message(rounds: int, python: str, only: tuple[str, ...], tree: Path, page: bool) -> None:
    """Show the milliseconds of each program; natsio takes part where the interpreter has it."""
    names = [f"{way} {client}" for way in WAYS for client in CLIENTS]
    names.append(LIST)
    with tempfile.TemporaryDirectory() as folder, NatsServer() as server:
        programs = Programs(python, tree, folder, server)
        lacking = {client for client, module in CLIENTS.items() if not programs.can(module)}
        able = [name for name in names if name.partition(" ")[2] not in lacking]
        chosen = [name for name in able if not only or name in only]
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
        for name in chosen:
            programs.prepare(name)
            programs.run(name)  # which compiles
        for number in range(rounds):
            for name in chosen if number % 2 == 0 else reversed(chosen):
                found[name].append(programs.run(name))
        programs.close()
    columns = ["program", "median, ms", "to nats-py", "CPU, ms", "CPU to nats-py"]
    note = f"Median of {rounds} rounds."
    show("first-message", columns, _rows(found), page=page, note=note, python=python)


if __name__ == "__main__":
    first_message()
