"""`make bench`: both twins beside their peers, on one server, in turns.

Every measurement is a process of its own. A round runs all clients one after the other, every
second round in reverse; what counts is the median of the ratios within a round, so that the
machine's speed of the moment cancels out. Each run checks that every message and acknowledgement
arrived. The limits `raw` and `raw_c` are what a socket can do in plain Python and in C, that of
asyncio is `raw_asyncio`, and that of publishers who tell answers apart is `raw_numbered`.

`python -m tests.bench.growth`, `.memory`, `.beside`, `.start`, `.first_message`,
`.models`, `.key_values` and `.objects` measure more;
`python -m tests.bench.report FILE` puts the figures of a file into docs/speed.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import click

from tests.bench.job import LATENCIES, RATES, TITLES
from tests.bench.suite import ALL, CLIENTS, Failed, Measured, Run, circumstances, suite
from twinstream.cli.screen import notes, plain_table, results


@click.command()
@click.option("--messages", default=50_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--calls", default=2_000, show_default=True, type=click.IntRange(min=100))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--only", multiple=True, type=click.Choice(ALL), help="Workloads.")
@click.option("--client", "chosen", multiple=True, type=click.Choice(list(CLIENTS)))
@click.option("--size", default=128, show_default=True, help="Bytes of a payload.")
@click.option("--headers", is_flag=True, help="Two headers on each message.")
@click.option("--storage", default="file", type=click.Choice(["file", "memory"]))
@click.option("--tls", is_flag=True)
@click.option("--python", default=sys.executable, help="The interpreter that runs the clients.")
@click.option("--json", "target", type=click.Path(path_type=Path), help="Write the figures.")
def bench(
    messages: int,
    calls: int,
    rounds: int,
    only: tuple[str, ...],
    chosen: tuple[str, ...],
    size: int,
    headers: bool,
    storage: str,
    tls: bool,
    python: str,
    target: Path | None,
) -> None:
    """Measure every client at every workload.

    natsrpy, nats-jetstream and natsio take part where the interpreter has them (the last two need
    3.13).
    """
    found: dict[str, Measured] = {}
    settings = {
        "messages": messages,
        "size": size,
        "headers": headers,
        "storage": storage,
        "tls": tls,
    }
    figures = {"of": circumstances(python) | settings, "measured": found}
    with suite(python, size=size, headers=headers, tls=tls) as measure:
        for client in CLIENTS:
            why = measure.why_not(client)
            if why is not None:
                notes().print(f"left out: {client}, {why}")
        # Each call of `next` takes one of them, too.
        measure.fill(max(messages, calls), storage)
        for workload in only or (*RATES, *LATENCIES):
            able = [name for name in measure.able(workload) if not chosen or name in chosen]
            count = calls if workload in LATENCIES else messages
            try:
                found[workload] = measure.rounds(workload, able, count, rounds)
            except Failed as error:
                raise click.ClickException(str(error)) from None
            _show(workload, found[workload])
            if target is not None:
                # After each, so that a run that is cut short leaves what it has.
                target.write_text(json.dumps(figures, indent=1) + "\n")
        for failure in measure.failures:
            notes().print(f"failed: {failure}")


def _show(workload: str, measured: Measured) -> None:
    latency = workload in LATENCIES
    what = ("p50 µs", "p99 µs") if latency else ("messages a second",)
    columns = (*what, "µs CPU a message", "to nats-py", "to raw", "growth MiB")
    table = plain_table("client", *columns, numbers=columns, title=TITLES[workload])
    key = "p50_us" if latency else "rate"
    for name, runs in measured.items():
        figures = [f"{median(run[key] for run in runs):,.0f}"]
        if latency:
            figures.append(f"{median(run['p99_us'] for run in runs):,.0f}")
        table.add_row(
            name,
            *figures,
            f"{median(run['cpu_us'] for run in runs):.2f}",
            ratio_text(runs, measured.get("nats_py"), key),
            ratio_text(runs, measured.get("raw"), key),
            f"{max(run['growth_mib'] for run in runs):.1f}",
        )
    results().print(table)


def ratio_text(runs: list[Run], base: list[Run] | None, key: str) -> str:
    """Return the median of the ratios within the rounds."""
    if not base:
        return "-"
    pairs = zip(runs, base, strict=True)
    return f"{median(run[key] / other[key] for run, other in pairs):.2f}"


if __name__ == "__main__":
    bench()
