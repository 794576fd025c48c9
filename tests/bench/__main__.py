"""``make bench``: both twins beside nats-py, on one server, in turns.

The machine's speed of the moment cancels out: every round runs all of them one after the other,
and what counts is the ratio to nats-py. CPU time is that of the client process alone.
"""

from __future__ import annotations

import time
from statistics import median

import click
from attrs import frozen

import js_sync
from js_cli.screen import plain_table, results
from js_models import StreamConfig
from js_sync import PublishFailure, PublishRequest
from js_testing import NatsServer
from tests.bench.drives import DRIVES, STREAM, SUBJECT, Drive

PAYLOAD = b"x" * 128


@frozen
class Cost:
    """What one message cost: microseconds on the clock, and of CPU."""

    clock: float
    cpu: float


@click.command()
@click.option("--messages", default=20_000, show_default=True, type=click.IntRange(min=1000))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
def bench(messages: int, rounds: int) -> None:
    """Measure fetching with and without acknowledgements."""
    with NatsServer() as server:
        _fill(server.url, messages)
        for acknowledge in (False, True):
            costs: dict[str, list[Cost]] = {name: [] for name in DRIVES}
            for _ in range(rounds):
                for name, drive in DRIVES.items():
                    costs[name].append(_measure(drive, server.url, messages, acknowledge))
            title = "fetch, an acknowledgement each" if acknowledge else "fetch, none acknowledged"
            _show(title, costs)


def _fill(url: str, count: int) -> None:
    with js_sync.connect(url) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name=STREAM, subjects=[SUBJECT], storage="memory"))
        requests = (PublishRequest(subject=SUBJECT, data=PAYLOAD) for _ in range(count))
        for outcome in jet.publish_many(requests):
            if isinstance(outcome, PublishFailure):
                raise outcome.error


def _measure(drive: Drive, url: str, count: int, acknowledge: bool) -> Cost:
    clock, cpu = time.perf_counter(), time.process_time()
    seen = drive(url, count, acknowledge)
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    if seen != count:
        raise click.ClickException(f"expected {count} messages, saw {seen}")
    return Cost(clock / count * 1e6, cpu / count * 1e6)


def _show(title: str, costs: dict[str, list[Cost]]) -> None:
    columns = ("messages a second", "µs a message", "µs CPU a message", "times nats-py")
    table = plain_table("client", *columns, numbers=columns, title=title)
    base = median(cost.clock for cost in costs["nats-py"])
    for name, measured in costs.items():
        clock = median(cost.clock for cost in measured)
        cpu = median(cost.cpu for cost in measured)
        row = (f"{1e6 / clock:,.0f}", f"{clock:.1f}", f"{cpu:.1f}", f"{base / clock:.1f}")
        table.add_row(name, *row)
    results().print(table)


if __name__ == "__main__":
    bench()
