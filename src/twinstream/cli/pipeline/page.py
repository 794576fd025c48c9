"""Create the report of a pipeline from its journals, as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Final

from attrs import frozen

from twinstream.cli.chart import STYLE, Bar, Series, bars, legend, stacked_areas
from twinstream.cli.screen import counted
from twinstream.cli.value_text import in_bytes

if TYPE_CHECKING:
    from twinstream.lake.entry import BatchEntry

COLUMNS: Final = 60
"""The number of values on the time axis of a chart."""

SHOWN: Final = 20
"""The maximum number of batches in the list of the last batches."""

_TIME: Final = "%Y-%m-%d %H:%M:%S"
_UNITS: Final = (("seconds", 1.0), ("minutes", 60.0), ("hours", 3600.0), ("days", 86400.0))


@frozen
class _Batch:
    source: str
    entry: BatchEntry
    ended: datetime


def page(name: str, sink: str, logs: Mapping[str, Sequence[BatchEntry]]) -> str:
    """Return the HTML report of a pipeline. `logs` contains the landed batches by source."""
    batches = sorted(
        (_Batch(source, each, _ended(each)) for source, log in logs.items() for each in log),
        key=lambda batch: batch.ended,
    )
    charts = _charts(batches, list(logs)) if batches else "<p>Nothing is landed yet.</p>"
    style = STYLE.read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Pipeline {escape(name)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{_header(name, sink, batches)}{_tiles(logs)}{charts}"
        f"{_last_batches(batches)}</main>\n</body>\n</html>\n"
    )


def _ended(entry: BatchEntry) -> datetime:
    return datetime.fromisoformat(entry.began) + timedelta(seconds=entry.seconds)


def _header(name: str, sink: str, batches: Sequence[_Batch]) -> str:
    text = f"Streams into {escape(sink)} tables."
    if batches:
        first, last = (
            each.ended.strftime("%Y-%m-%d %H:%M:%S") for each in (batches[0], batches[-1])
        )
        text += f" {counted(len(batches), 'batch')} from {first} to {last} UTC."
    return f"<header><h1>Pipeline {escape(name)}</h1><p>{text}</p></header>\n"


def _tiles(logs: Mapping[str, Sequence[BatchEntry]]) -> str:
    """Return the boxes with the totals of all sources as HTML."""
    entries = [each for log in logs.values() for each in log]
    messages = sum(each.messages for each in entries)
    dead = sum(each.dead_letters for each in entries)
    seconds = sum(each.seconds for each in entries)
    lag = sum(log[-1].backlog for log in logs.values() if log)
    tiles = (
        ("landed", f"{messages:,}", f"{messages / seconds:,.0f} a second" if seconds else ""),
        ("dead letters", f"{dead:,}", f"{dead / messages:.2%} of all" if messages else ""),
        ("written", in_bytes(sum(each.bytes for each in entries)), counted(len(entries), "batch")),
        ("lag", f"{lag:,}", "after the last batches"),
    )
    cells = (
        f"<div><span>{name}</span><b>{value}</b><small>{note}</small></div>"
        for name, value, note in tiles
    )
    return f'<div class="tiles">{"".join(cells)}</div>\n'


def _charts(batches: Sequence[_Batch], sources: Sequence[str]) -> str:
    """Return the sections with charts of throughput, lag and dead letters as HTML."""
    axis = _Axis.of(batches)
    parts = [
        _section(
            "Throughput",
            "Messages that were landed, over time.",
            sources,
            _chart(axis, sources, axis.sums(batches, sources), "messages landed a second"),
        ),
        _section(
            "Lag",
            "Sequences that waited in the streams when a batch was landed.",
            sources,
            _chart(axis, sources, axis.peaks(batches, sources), "sequences behind"),
        ),
    ]
    dead = [
        Bar(source, float(sum(b.entry.dead_letters for b in batches if b.source == source)))
        for source in sources
    ]
    parts.append(
        _section(
            "Dead letters",
            "Messages that did not fit their schema; their bytes and the reasons are in the tables"
            " below dead_letters.",
            (),
            bars(dead, title="Dead letters by source"),
        )
    )
    return "".join(parts)


@frozen
class _Axis:
    """The time axis of a chart, divided into `COLUMNS` intervals of `step` seconds.

    The labels are in `unit`, which is `factor` seconds long.
    """

    begin: datetime
    step: float
    unit: str
    factor: float

    @classmethod
    def of(cls, batches: Sequence[_Batch]) -> _Axis:
        begin = min(datetime.fromisoformat(each.entry.began) for each in batches)
        length = max((batches[-1].ended - begin).total_seconds(), 1.0)
        unit, factor = next(
            (found for found in reversed(_UNITS) if length >= 2 * found[1]), _UNITS[0]
        )
        return cls(begin, length / COLUMNS, unit, factor)

    @property
    def end(self) -> float:
        return self.step * COLUMNS / self.factor

    def column(self, moment: datetime) -> int:
        return min(int((moment - self.begin).total_seconds() / self.step), COLUMNS - 1)

    def sums(self, batches: Iterable[_Batch], sources: Sequence[str]) -> list[Series]:
        """Return the messages per second of each source in each interval.

        The messages of a batch are distributed evenly over its duration.
        """
        values = {source: [0.0] * COLUMNS for source in sources}
        for batch in batches:
            first = self.column(datetime.fromisoformat(batch.entry.began))
            last = self.column(batch.ended)
            share = batch.entry.messages / (last - first + 1) / self.step
            for column in range(first, last + 1):
                values[batch.source][column] += share
        return [Series(source, values[source]) for source in sources]

    def peaks(self, batches: Iterable[_Batch], sources: Sequence[str]) -> list[Series]:
        """Return the largest backlog of each source in each interval.

        An interval in which no batch ended has the value of the preceding interval. The values are
        0 before the first batch.
        """
        found: dict[str, dict[int, float]] = {source: {} for source in sources}
        for batch in batches:
            column, known = self.column(batch.ended), found[batch.source]
            known[column] = max(known.get(column, 0.0), float(batch.entry.backlog))
        series: list[Series] = []
        for source, peaks in found.items():
            values: list[float] = []
            for column in range(COLUMNS):
                values.append(peaks.get(column, values[-1] if values else 0.0))
            series.append(Series(source, values))
        return series


def _chart(axis: _Axis, sources: Sequence[str], series: list[Series], label: str) -> str:
    return stacked_areas(
        series,
        end=axis.end,
        x_label=f"{axis.unit} since {axis.begin:{_TIME}} UTC",
        y_label=label,
        title=f"{label} of {', '.join(sources)}, over time",
    )


def _section(title: str, prose: str, names: Sequence[str], chart: str) -> str:
    shown = legend(names) if names else ""
    return f"<section><h2>{title}</h2><p>{prose}</p>{shown}{chart}</section>\n"


def _last_batches(batches: Sequence[_Batch]) -> str:
    """Return a table of the last `SHOWN` batches as HTML, the newest first."""
    columns = ("source", "batch", "sequences", "messages", "dead letters", "seconds", "landed at")
    head = "".join(_cell("th", at, text) for at, text in enumerate(columns))
    rows: list[str] = []
    for batch in batches[: -SHOWN - 1 : -1]:
        entry = batch.entry
        texts = (
            escape(batch.source),
            f"{entry.batch:,}",
            f"{entry.start:,} to {entry.end - 1:,}",
            f"{entry.messages:,}",
            f"{entry.dead_letters:,}",
            f"{entry.seconds:,.1f}",
            f"{batch.ended:{_TIME}}",
        )
        rows.append(
            "<tr>" + "".join(_cell("td", at, text) for at, text in enumerate(texts)) + "</tr>"
        )
    table = f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
    return f"<section><h2>The last batches</h2>{table}</section>\n" if rows else ""


def _cell(tag: str, at: int, text: str) -> str:
    style = ' class="number"' if 1 <= at <= 5 else ""
    return f"<{tag}{style}>{text}</{tag}>"
