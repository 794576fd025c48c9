"""Fuzzing of the wire: `make fuzz-wire`, or `python -m tests.fuzz --seconds 600`.

Mutated and structure-aware input goes to the parser at any split, to everything that reads
messages, and to the whole client in both twins, from a server that lies. Only errors of the SDK
may come out, the parse of pieces equals that of the whole, and nothing hangs or is left behind.
A finding prints the seed and the input.
"""

from __future__ import annotations

import sys
import time

import click

from tests.fuzz.client import CLIENTS, client_rounds
from tests.fuzz.grammar import Grammar
from tests.fuzz.wire import TARGETS, Finding

_NAMES = (*TARGETS, *CLIENTS)


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="How long, for all together.")
@click.option("--inputs", type=int, help="How many inputs of each target without I/O, instead.")
@click.option("--seed", type=int, help="Where to begin; drawn by the time by default.")
@click.option("--only", multiple=True, type=click.Choice(_NAMES), help="Targets.")
def fuzz(seconds: float, inputs: int | None, seed: int | None, only: tuple[str, ...]) -> None:
    """Look for input that breaks the client."""
    chosen = only or _NAMES
    start = time.time_ns() % 1_000_000_000 if seed is None else seed
    share = seconds / len(chosen)
    for name in chosen:
        print(f"{name}: seed {start}", flush=True)
        began = time.monotonic()
        try:
            if name in CLIENTS:
                count, what = client_rounds(name, start, share), "calls"
            else:
                count, what = run_target(name, start, share, inputs), "inputs"
        except Finding as finding:
            print(f"{name}: {finding}", file=sys.stderr)
            raise
        print(f"{name}: {count:,} {what} in {time.monotonic() - began:.0f} s, no finding")


def run_target(name: str, seed: int, seconds: float, inputs: int | None = None) -> int:
    """Run a target without I/O for some seconds, or so many inputs; return how many it was."""
    target, grammar = TARGETS[name], Grammar(seed)
    until, done = time.monotonic() + seconds, 0
    while done < inputs if inputs is not None else time.monotonic() < until:
        # The clock is read once in a hundred inputs.
        for _ in range(100):
            target(grammar)
        done += 100
    return done


if __name__ == "__main__":
    fuzz()
