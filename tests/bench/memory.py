"""`python -m tests.bench.memory`: what stays behind when much work is done.

Consuming 1,000,000 messages; publishing 60,000 to a stream that acknowledges nothing, 10,000 of
them under way; and 100,000 fetches of which most are cut short: for each twin, in a process of its
own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, Final

import click

from tests.bench.memory_work import WORK
from tests.bench.page import show
from tests.bench.suite import ROOT, suite

TITLES: Final = {
    "consume": "consume, ack each",
    "pending": "publish, nobody answers",
    "cycles": "fetch and cancel",
}
COLUMNS: Final = {
    "done": "done",
    "in_flight": "most in flight",
    "peak_mib": "growth at its peak, MiB",
    "growth_mib": "growth at the end, MiB",
    "threads": "threads",
    "subscriptions": "subscriptions",
    "tasks": "tasks",
}


def _run(name: str, url: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.memory", name, url, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise click.ClickException(f"{name}: {done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@click.command()
@click.option("--messages", default=1_000_000, show_default=True, help="Messages to consume.")
@click.option("--publishes", default=60_000, show_default=True, help="Without an answer.")
@click.option("--cycles", default=100_000, show_default=True, help="Fetches to make.")
@click.option("--page", is_flag=True, help="Write the table of docs/speed.md.")
def memory(messages: int, publishes: int, cycles: int, page: bool) -> None:
    """Show what grew."""
    counts = {"consume": messages, "pending": publishes, "cycles": cycles}
    rows: list[list[str]] = []
    with suite(sys.executable) as measure:
        measure.fill(messages, "file")
        for name in WORK:
            began = time.monotonic()
            kind, _, twin = name.partition("_")
            found = _run(name, measure.url, counts[kind])
            cells = [_cell(found.get(key, "")) for key in COLUMNS]
            rows.append([f"{TITLES[kind]}: `js_{twin}`", *cells, f"{time.monotonic() - began:.0f}"])
    show("memory", ["work", *COLUMNS.values(), "seconds"], rows, page=page)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in WORK:
        print(WORK[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
    else:
        memory()
