"""`python -m tests.bench.report FILE`: put the figures of a file of `--json` into docs/speed.md.

Writes the table between its marks there, and the chart `docs/bench.svg`.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from tests.bench.__main__ import ratio_text
from tests.bench.job import LATENCIES, TITLES
from tests.bench.page import PAGE, put
from tests.bench.plot import bar_chart
from tests.bench.suite import ROOT, Measured

BEGIN: Final = "<!-- figures, written by "
END: Final = "<!-- end of figures -->\n"
LIMITS: Final = {
    "raw": "a socket in plain Python that only counts",
    "raw_asyncio": "a bare asyncio protocol that does the same",
    "raw_numbered": "the same socket with a reply subject for each message",
}
SHOWN: Final = (
    "js_sync",
    "js_async",
    "js_async_uvloop",
    "over_nats_py",
    "natsrpy",
    "nats_jetstream",
    "natsio",
    *LIMITS,
)
ASIDE: Final = {"raw_asyncio", "raw_numbered"}
"""What the first table leaves to the others."""
NAMES: Final = {
    "js_async_uvloop": "js_async on uvloop",
    "over_nats_py": "js_async over nats-py",
    "nats_jetstream": "nats-jetstream",
}


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--page", help="Write the table of this name instead.")
def report(file: Path, page: str | None) -> None:
    """Write table and chart."""
    figures = json.loads(file.read_text())
    measured: dict[str, Measured] = figures["measured"]
    if page is not None:
        text = table(measured, figures["of"])
        put(PAGE, f"<!-- {page}, written by ", f"<!-- end of {page} -->\n", text)
        return
    for runs in measured.values():
        for name in ASIDE & runs.keys():
            del runs[name]
    put(PAGE, BEGIN, END, table(measured, figures["of"]))
    chart = ROOT / "docs" / "bench.svg"
    chart.write_text(bar_chart("times as fast as nats-py", speeds(measured)))


def table(measured: dict[str, Measured], of: dict[str, Any]) -> str:
    """Return the table: each client against nats-py."""
    clients = [name for name in SHOWN if any(name in runs for runs in measured.values())]
    head = [
        "workload",
        *(NAMES.get(name, f"`{name}`" if "js" in name else name) for name in clients),
    ]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * len(clients)]
    for workload, runs in measured.items():
        latency = workload in LATENCIES
        key = "p50_us" if latency else "rate"
        what = f"{TITLES[workload]}, {'median time' if latency else 'rate'}"
        cells = [
            ratio_text(runs[name], runs.get("nats_py"), key) if name in runs else "-"
            for name in clients
        ]
        lines.append("| " + " | ".join([what, *cells]) + " |")
    what = f"{of['size']}-byte messages{_extras(of)}, {of['storage']} storage"
    limits = ", ".join(f"`{name}` is {text}" for name, text in LIMITS.items() if name in clients)
    limits = f"; {limits}" if limits else ""
    of_what = (
        f"\nEach figure is a ratio to nats-py: taken within each round, then the median of the"
        f" rounds. For rates, above 1 is better; for times, below 1. {what},"
        f" nats-server {of['nats-server']}, Python {of['python']}, {of['processors']} processors"
        f"{limits}.\n"
    )
    return "\n".join(lines) + "\n" + of_what


def _extras(of: dict[str, Any]) -> str:
    words = [" with headers" if of.get("headers") else "", " over TLS" if of.get("tls") else ""]
    return "".join(words)


def speeds(measured: dict[str, Measured]) -> dict[str, dict[str, float]]:
    """Return how many times as fast as nats-py each client is."""
    found: dict[str, dict[str, float]] = {}
    for workload, runs in measured.items():
        key = "p50_us" if workload in LATENCIES else "rate"
        bars: dict[str, float] = {}
        for name in SHOWN:
            if name in runs and name not in LIMITS:
                pairs = zip(runs[name], runs["nats_py"], strict=True)
                ratio = median(run[key] / base[key] for run, base in pairs)
                bars[NAMES.get(name, name)] = 1 / ratio if workload in LATENCIES else ratio
        found[TITLES[workload]] = bars
    return found


if __name__ == "__main__":
    report()
