"""`python -m tests.bench.growth`: how the cost of the blocking twin grows with the task.

The client's CPU for each message, over message sizes, consumers on one connection, connections,
and subjects in one stream; `--plots FOLDER` draws each as an SVG, `--page` writes those of
docs/speed.md. Linear or better is the aim: the cost of one message (of one byte, beyond a few
kilobytes) must not rise.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click

import js_sync
from tests.bench.page import DOCS, show
from tests.bench.plot import line_plot
from tests.bench.suite import ROOT
from twinstream.cli.screen import notes
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

SIZES: Final = [16, 128, 1024, 8192, 65_536, 262_144, 1_048_576]
Figures = dict[int, dict[str, float]]

CONSUMERS: Final = [1, 3, 10, 30, 100]
CONNECTIONS: Final = [1, 3, 10, 25, 50]
# What each consumer and each connection reads: with fewer, its start would be what is measured.
MESSAGES: Final = 5_000
SUBJECTS: Final = [1, 100, 10_000, 100_000, 1_000_000]


def publish(jet: js_sync.JetStream, subjects: Iterator[str], size: int) -> int:
    """Publish a message to each subject; return how many."""
    data = b"x" * size
    requests = (js_sync.PublishRequest(subject=each, data=data) for each in subjects)
    count = 0
    window = max(4, min(4000, 32_000_000 // size))
    for outcome in jet.publish_many(requests, window=window):
        if isinstance(outcome, js_sync.PublishFailure):
            raise outcome.error
        count += 1
    return count


def read(source: js_sync.Consumer, count: int) -> int:
    """Iterate over messages; return how many there were."""
    seen = 0
    with source.messages(stop_after=count) as messages:
        for _ in messages:
            seen += 1
    return seen


def config() -> ConsumerConfig:
    """Return the configuration of a consumer."""
    # Its turn to be read may come late.
    patience = timedelta(minutes=10)
    return ConsumerConfig(ack_policy="none", mem_storage=True, inactive_threshold=patience)


def sizes(url: str, size: int) -> dict[str, float]:
    """Publish and read messages of one size."""
    count = max(50, min(20_000, 100_000_000 // size))
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name=f"S{size}", subjects=[f"s{size}"]))
        publishing = cpu(lambda: publish(jet, (f"s{size}" for _ in range(count)), size), count)
        source = stream.create_consumer(config())
        reading = cpu(lambda: read(source, count), count)
        jet.delete_stream(stream.name)
    return {"publish": publishing, "read": reading}


def consumers(url: str, number: int) -> dict[str, float]:
    """Read the same messages by several consumers of one connection, in turns."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name=f"C{number}", subjects=[f"c{number}"]))
        publish(jet, (f"c{number}" for _ in range(MESSAGES)), 128)
        with ExitStack() as stack:
            sources = [
                stack.enter_context(stream.create_consumer(config()).messages(stop_after=MESSAGES))
                for _ in range(number)
            ]
            reading = cpu(lambda: _in_turns(sources), MESSAGES * number)
        jet.delete_stream(stream.name)
    return {"read": reading}


def _in_turns(sources: list[js_sync.Messages]) -> int:
    seen = 0
    for together in zip(*sources, strict=True):
        seen += len(together)
    return seen


def connections(url: str, number: int) -> dict[str, float]:
    """Read by several connections of one process, one after the other."""
    with ExitStack() as stack:
        jets = [
            stack.enter_context(js_sync.connect(url)).jetstream(timeout=60) for _ in range(number)
        ]
        stream = jets[0].create_stream(StreamConfig(name=f"N{number}", subjects=[f"n{number}"]))
        publish(jets[0], (f"n{number}" for _ in range(MESSAGES)), 128)
        sources = [jet.create_consumer(stream.name, config()) for jet in jets]
        reading = cpu(lambda: sum(read(each, MESSAGES) for each in sources), MESSAGES * number)
        jets[0].delete_stream(stream.name)
    return {"read": reading}


def subjects(url: str, number: int) -> dict[str, float]:
    """Publish to many subjects of one stream and read them."""
    count = max(number, 20_000)
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        stream = jet.create_stream(StreamConfig(name=f"M{number}", subjects=[f"m{number}.*"]))
        names = (f"m{number}.{index % number}" for index in range(count))
        publishing = cpu(lambda: publish(jet, names, 16), count)
        source = stream.create_consumer(config())
        reading = cpu(lambda: read(source, count), count)
        jet.delete_stream(stream.name)
    return {"publish": publishing, "read": reading}


def cpu(work: Callable[[], int], count: int) -> float:
    """Return the microseconds of CPU for each message; raises for one that is missing."""
    began = time.process_time()
    done = work()
    took = time.process_time() - began
    if done != count:
        raise AssertionError(f"{done} of {count}")
    return took / count * 1e6


AXES: Final[dict[str, tuple[Callable[[str, int], dict[str, float]], list[int], str]]] = {
    "sizes": (sizes, SIZES, "bytes of a message"),
    "consumers": (consumers, CONSUMERS, "consumers on one connection"),
    "connections": (connections, CONNECTIONS, "connections"),
    "subjects": (subjects, SUBJECTS, "subjects in the stream"),
}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(AXES)))
@click.option("--plots", type=click.Path(path_type=Path), help="A folder for SVG plots.")
@click.option("--page", is_flag=True, help="Write tables and plots of docs/speed.md.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
def growth(only: tuple[str, ...], plots: Path | None, page: bool, rounds: int) -> None:
    """Show CPU for each message along each axis: of several rounds in turns, the best."""
    folder = DOCS if page else plots
    for axis in only or AXES:
        found = _axis(axis, rounds)
        show(f"growth-{axis}", *_table(axis, found), page=page)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / f"growth-{axis}.svg"
            target.write_text(line_plot(AXES[axis][2], "CPU µs a message", found))
            notes().print(f"{target} written")


def _axis(axis: str, rounds: int) -> Figures:
    found: Figures = {}
    for _ in range(rounds):
        for point in AXES[axis][1]:
            measured = _point(axis, point)
            # Other work on the machine only ever adds.
            best = found.setdefault(point, measured)
            found[point] = {line: min(best[line], measured[line]) for line in best}
    return found


def _point(axis: str, point: int) -> dict[str, float]:
    # A server for each: what one leaves behind is not to weigh on the next.
    with NatsServer() as server:
        command = [sys.executable, "-m", "tests.bench.growth", axis, server.url, str(point)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise click.ClickException(f"{axis} {point}: {done.stderr[-1500:]}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _table(axis: str, found: Figures) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows; an order is how the whole cost grew since the point before.

    1 is linear: ten times the messages, consumers or bytes, ten times the cost.
    """
    lines = list(next(iter(found.values())))
    columns = [AXES[axis][2]]
    for line in lines:
        columns += [f"{line}, µs CPU a message", "order"]
    rows: list[list[str]] = []
    before: int | None = None
    for point, figures in found.items():
        row = [f"{point:,}"]
        for line in lines:
            order = "" if before is None else _order(axis, found, before, point, line)
            row += [f"{figures[line]:.2f}", order]
        rows.append(row)
        before = point
    return columns, rows


def _order(axis: str, found: Figures, before: int, point: int, line: str) -> str:
    grown = math.log(found[point][line] / found[before][line]) / math.log(point / before)
    # Of sizes the figure is that of one message already, elsewhere there are more messages.
    return f"{grown if axis == 'sizes' else 1 + grown:.2f}"


def _one(axis: str, url: str, point: str) -> Any:
    work, _, _ = AXES[axis]
    return work(url, int(point))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in AXES:
        print(json.dumps(_one(*sys.argv[1:])))
    else:
        growth()
