"""Fuzzing of stored data: `make fuzz`, or `python -m tests.fuzz.stored --seconds 600`.

Mutations of real letters, advisories, descriptions, records, schedules, entries and files go to
everything that reads them. Only errors of the SDK may come out, within a bound of time, and no call
may do what the caller did not name. A finding prints its seed: `--only KIND --seed N --inputs 1`
repeats it.
"""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from tests.fuzz.stored.client import CLIENTS, run_client
from tests.fuzz.stored.readers import READERS, run_readers
from tests.fuzz.wire import Finding

_NAMES: Final = (*READERS, *CLIENTS)
_AT_ONCE: Final = 100


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="How long, for all together.")
@click.option("--inputs", type=int, help="How many inputs of each target, instead.")
@click.option("--seed", type=int, help="Where to begin; drawn by the time by default.")
@click.option("--only", multiple=True, type=click.Choice(_NAMES), help="Targets.")
def fuzz(seconds: float, inputs: int | None, seed: int | None, only: tuple[str, ...]) -> None:
    """Look for stored data that breaks or misleads what reads it."""
    chosen = only or _NAMES
    start = time.time_ns() % 1_000_000_000 if seed is None else seed
    for name in chosen:
        print(f"{name}: seed {start}", flush=True)
        began = time.monotonic()
        try:
            count = run_target(name, start, seconds / len(chosen), inputs)
        except Finding as finding:
            print(f"{name}: {finding}", file=sys.stderr)
            raise
        taken = time.monotonic() - began
        print(f"{name}: {count:,} inputs in {taken:.0f} s, no finding", flush=True)


def run_target(name: str, seed: int, seconds: float, inputs: int | None = None) -> int:
    """Run a target for some seconds, or so many inputs; return how many it was."""
    end = time.monotonic() + seconds

    def more(done: int) -> int:
        if inputs is not None:
            return min(_AT_ONCE, inputs - done)
        # The clock is read once in so many inputs.
        at_once = 1 if name in CLIENTS else _AT_ONCE
        return at_once if time.monotonic() < end else 0

    if name in CLIENTS:
        return sum(run_client(name, seed, more).values())
    return run_readers(name, seed, more)


if __name__ == "__main__":
    fuzz()
