"""Write the report of the demo as one HTML page without references to other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from examples.demo.ledger import Ledger
from examples.demo.scene import Scene
from examples.demo.sums import Check
from twinstream.cli.chart import STYLE, Bar, Series, bars, legend, stacked_areas

COLUMNS: Final = 48
"""The number of values on the time axis of the chart, chosen to fit its width."""


def write_page(path: Path, scene: Scene, checks: Sequence[Check]) -> None:
    """Write the report of a completed run to `path`."""
    style = STYLE.read_text("utf-8")
    good = all(check.passed for check in checks)
    body = [
        _header(scene, good),
        _tiles(scene),
        _section("Two twins, one consumer", _twins(scene.ledger)) if scene.ledger else "",
        _section("Contents of the Parquet tables", _subjects(scene)) if scene.subjects else "",
        _section("Advisories from the server", _advisories(scene)),
        _section("Do the numbers agree?", _sums(checks)),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Twinstream demo</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(body)}</main>\n</body>\n</html>\n",
        "utf-8",
    )


def _header(scene: Scene, good: bool) -> str:
    verdict = "all numbers agree" if good else "some numbers are wrong"
    mark = "good" if good else "bad"
    return (
        "<header><h1>From the spec to Parquet</h1>"
        f"<p>{scene.published:,} order events through NATS JetStream {escape(scene.server_version)}"
        f' and both twins into typed tables: <strong class="{mark}">{verdict}</strong>.</p>'
        "</header>\n"
    )


def _tiles(scene: Scene) -> str:
    settled = scene.ledger.settled if scene.ledger else 0
    tiles = [
        ("published", f"{scene.published:,}", _rate(scene.published, scene.publish_seconds)),
        ("stored", f"{scene.stored:,}", f"{scene.refused_as_duplicate:,} repeats refused"),
        ("consumed", f"{settled:,}", _rate(settled, scene.consume_seconds)),
    ]
    if scene.settings.spark:
        note = f"{scene.dead_letters:,} dead letters"
        tiles.append(("in Parquet", f"{scene.in_parquet:,}", note))
    cells = [
        f"<div><span>{name}</span><b>{value}</b><small>{note}</small></div>"
        for name, value, note in tiles
    ]
    return f'<div class="tiles">{"".join(cells)}</div>\n'


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f} a second" if seconds else ""


def _sums(checks: Sequence[Check]) -> str:
    rows = [
        (
            check.name,
            f"{check.expected:,}",
            f"{check.found:,}",
            _verdict(check.passed),
        )
        for check in checks
    ]
    return _table(("sum", "expected", "found", ""), rows, numbers=(1, 2))


def _verdict(passed: bool) -> str:
    return '<span class="good">agrees</span>' if passed else '<span class="bad">wrong</span>'


def _twins(ledger: Ledger) -> str:
    workers = sorted(ledger.deliveries)
    end = max((entry.seconds for entry in ledger.timeline), default=0.0)
    step = max(end / COLUMNS, 1e-6)
    counts: Counter[tuple[str, int]] = Counter(
        (entry.worker, min(int(entry.seconds / step), COLUMNS - 1)) for entry in ledger.timeline
    )
    series = [Series(name, [counts[name, i] / step for i in range(COLUMNS)]) for name in workers]
    chart = stacked_areas(
        series,
        end=step * COLUMNS,
        x_label="seconds since the workers started",
        y_label="messages settled a second",
        title="Messages that each twin settled, over time",
    )
    shares = ", ".join(f"{ledger.deliveries[name]:,} by {escape(name)}" for name in workers)
    prose = (
        f"<p>{sum(ledger.deliveries.values()):,} deliveries ({shares}). {ledger.failures:,} of"
        f" them failed on purpose; {len(ledger.exhausted):,} messages did so until max_deliver"
        f" ({ledger.max_deliver}), and {len(ledger.terminated):,} were no JSON and were"
        " terminated.</p>"
    )
    return prose + legend(workers) + chart


def _subjects(scene: Scene) -> str:
    rows = [
        Bar(row.subject.removeprefix("orders."), row.orders, f"€ {row.amount:,.0f}")
        for row in scene.subjects
    ]
    prose = (
        "<p>Order events by subject, counted from the typed columns; at the right the sum of"
        " their amounts.</p>"
    )
    return prose + bars(rows, title="Order events by subject, from Parquet")


def _advisories(scene: Scene) -> str:
    rows = [
        (f"<code>{escape(kind.name)}</code>", f"{kind.count:,}", escape(kind.example))
        for kind in scene.advisories
    ]
    return _table(("advisory", "count", "the first of them"), rows, numbers=(1,))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int]) -> str:
    def cell(tag: str, index: int, text: str) -> str:
        style = ' class="number"' if index in numbers else ""
        return f"<{tag}{style}>{text}</{tag}>"

    head = "".join(cell("th", i, text) for i, text in enumerate(columns))
    lines = ["".join(cell("td", i, text) for i, text in enumerate(row)) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
