"""``make bench``: both twins beside their peers, on one server, in turns.

Every measurement is a process of its own. A round runs all clients one after the other, every
second round in reverse; what counts is the median of the ratios within a round, so that the
machine's speed of the moment cancels out. Each run checks that every message and acknowledgement
arrived. Bounds of the limit client (``raw``) are what plain Python can do on a socket.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

import js_sync
from js_cli.screen import plain_table, results
from js_models import StreamConfig
from js_testing import NatsServer
from tests.bench.workloads import (
    LATENCIES,
    PAYLOAD,
    RATES,
    SINK,
    SINK_SUBJECT,
    STREAM,
    SUBJECT,
    TITLES,
)

CLIENTS: Final = {
    "js_sync": (*RATES, *LATENCIES),
    "js_async": (*RATES, *LATENCIES),
    "over_nats_py": ("drain", "consume"),
    "nats_py": (*RATES, *LATENCIES),
    "raw": (*RATES, *LATENCIES),
}

Measured = dict[str, list[dict[str, Any]]]


@click.command()
@click.option("--messages", default=50_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--calls", default=2_000, show_default=True, type=click.IntRange(min=100))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--only", multiple=True, type=click.Choice([*RATES, *LATENCIES]))
@click.option("--memory", is_flag=True, help="Consume 1,000,000 messages and show the growth.")
@click.option("--json", "target", type=click.Path(path_type=Path), help="Write the figures.")
def bench(
    messages: int,
    calls: int,
    rounds: int,
    only: tuple[str, ...],
    memory: bool,
    target: Path | None,
) -> None:
    """Measure every client at every workload."""
    if memory:
        messages, rounds, only = 1_000_000, 1, ("consume",)
    found: dict[str, Measured] = {}
    with NatsServer() as server:
        _fill(server.url, messages)
        for workload in only or (*RATES, *LATENCIES):
            count = calls if workload in LATENCIES else messages
            clients = [name for name, able in CLIENTS.items() if workload in able]
            if memory:
                clients = ["js_sync", "js_async"]
            found[workload] = _rounds(server.url, workload, clients, count, rounds)
            _show(workload, found[workload])
    if target is not None:
        target.write_text(json.dumps(found, indent=1) + "\n")


def _rounds(url: str, workload: str, clients: list[str], count: int, rounds: int) -> Measured:
    measured: Measured = {name: [] for name in clients}
    for number in range(rounds):
        for name in clients if number % 2 == 0 else reversed(clients):
            measured[name].append(_run(name, workload, url, count))
    return measured


def _run(client: str, workload: str, url: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.run", client, workload, url, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise click.ClickException(f"{client}, {workload}: {done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    if found["count"] != count and workload in LATENCIES:
        raise click.ClickException(f"{client}, {workload}: {found['count']} of {count}")
    return found


def _fill(url: str, count: int) -> None:
    with js_sync.connect(url) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name=STREAM, subjects=[SUBJECT]))
        jet.create_stream(StreamConfig(name=SINK, subjects=[SINK_SUBJECT]))
        requests = (js_sync.PublishRequest(subject=SUBJECT, data=PAYLOAD) for _ in range(count))
        for outcome in jet.publish_many(requests):
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error


def _show(workload: str, measured: Measured) -> None:
    latency = workload in LATENCIES
    what = "p50 µs" if latency else "messages a second"
    columns = (what, "µs CPU a message", "to nats-py", "to raw", "growth MiB")
    table = plain_table("client", *columns, numbers=columns, title=TITLES[workload])
    for name, runs in measured.items():
        key = "p50_us" if latency else "rate"
        table.add_row(
            name,
            f"{median(run[key] for run in runs):,.0f}",
            f"{median(run['cpu_us'] for run in runs):.2f}",
            _ratio(runs, measured.get("nats_py"), key),
            _ratio(runs, measured.get("raw"), key),
            f"{max(run['growth_mib'] for run in runs):.1f}",
        )
    results().print(table)


def _ratio(runs: list[dict[str, Any]], base: list[dict[str, Any]] | None, key: str) -> str:
    if not base:
        return "-"
    pairs = zip(runs, base, strict=True)
    return f"{median(run[key] / other[key] for run, other in pairs):.2f}"


if __name__ == "__main__":
    bench()
