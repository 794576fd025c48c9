"""`python -m tests.bench.verify`: the memory of `twinstream pipeline verify`, by messages.

The command verifies tables of each kind that it has landed before. The memory is that of the
command and all its processes, at its peak.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click
from attrs import frozen

from tests.bench.lake import stream_of
from tests.bench.processes import Process, family
from tests.bench.spark import fill_stream
from tests.bench.suite import ROOT
from twinstream.cli.screen import plain_table, results
from twinstream.testing import NatsServer

SINKS: Final = ("parquet", "delta")

# Seconds between two looks at the processes.
_LOOK: Final = 0.02


@frozen
class Measured:
    """What a command took: its seconds, its CPU seconds, and its memory at its peak in MiB.

    `own` is the part of `peak` that is in no file, which other processes do not influence.
    """

    seconds: float
    cpu: float
    peak: float
    own: float


def measured(folder: Path, *words: str) -> Measured:
    """Run a command of pipelines with the file `orders.toml` of a folder."""
    before = {each.pid for each in family()}
    began, peak, own, cpu = time.perf_counter(), 0, 0, 0.0
    with subprocess.Popen(
        [sys.executable, "-m", "twinstream", "pipeline", *words, "--config", "orders.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        while process.poll() is None:
            found: list[Process] = [each for each in family() if each.pid not in before]
            peak = max(peak, sum(each.resident for each in found))
            own = max(own, sum(each.own for each in found))
            cpu = max(cpu, sum(each.cpu for each in found))
            time.sleep(_LOOK)
        if process.returncode:
            assert process.stdout is not None
            raise click.ClickException(f"{words}: {process.stdout.read()[-1500:]}")
    return Measured(time.perf_counter() - began, cpu, peak / 2**20, own / 2**20)


@click.command()
@click.option("--messages", default=5_000_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--batch", default=500_000, show_default=True, type=click.IntRange(min=1))
def bench(messages: int, batch: int) -> None:
    """Measure with a hundredth, a fifth and all of the messages."""
    table = plain_table("messages", "tables", "s", "CPU s", "peak MiB", "own MiB")
    with NatsServer() as server:
        for count in (messages // 100, messages // 5, messages):
            fill_stream(server.url, stream_of(count), count)
            for sink in SINKS:
                with tempfile.TemporaryDirectory() as name:
                    (Path(name) / "orders.toml").write_text(
                        f'path = "lake"\nsink = "{sink}"\nengine = "local"\n'
                        f'[nats]\nservers = "{server.url}"\n[[source]]\n'
                        f'stream = "{stream_of(count)}"\ntable = "orders"\nmax_messages = {batch}\n'
                    )
                    measured(Path(name), "run", "--once")
                    found = measured(Path(name), "verify")
                figures = (found.seconds, found.cpu, found.peak, found.own)
                table.add_row(f"{count:,}", sink, *(f"{each:.1f}" for each in figures))
    results().print(table)


if __name__ == "__main__":
    bench()
