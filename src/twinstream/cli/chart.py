"""Charts as inline SVG: stacked areas over time, and horizontal bars.

The colours are CSS variables of the page, such as `--first` and `--line`, so that a chart has
the light or dark colours of the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from attrs import frozen

STYLE: Final = Path(__file__).with_name("page.css")
"""The style sheet of a page with charts."""

WIDTH: Final = 720
_COLOURS: Final = ("var(--first)", "var(--second)", "var(--third)")


@frozen
class Series:
    """A named list of values. All series of a chart have the same length."""

    name: str
    values: Sequence[float]


@frozen
class Bar:
    """A bar of a chart, with its name at the left, its value next to it, its note at the right."""

    name: str
    value: float
    note: str = ""


def stacked_areas(
    series: Sequence[Series], *, end: float, x_label: str, y_label: str, title: str
) -> str:
    """Return an SVG image of series stacked on each other.

    The values of each series are spread evenly from 0 to `end` on the x axis.
    """
    height, left, right, top, bottom = 280, 76, 16, 16, 44
    end = end or 1.0
    plot_width, plot_height = WIDTH - left - right, height - top - bottom
    columns = max(len(row.values) for row in series)
    totals = [sum(row.values[i] for row in series) for i in range(columns)]
    ceiling = nice_ceiling(max(totals, default=1.0))

    def x(index: float) -> float:
        return left + plot_width * index / max(columns - 1, 1)

    def y(value: float) -> float:
        return top + plot_height * (1 - value / ceiling)

    parts = [_grid(y, ceiling, left, WIDTH - right)]
    base = [0.0] * columns
    for number, row in enumerate(series):
        upper = [low + value for low, value in zip(base, row.values, strict=True)]
        points = [f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(upper)]
        points += [f"{x(i):.1f},{y(base[i]):.1f}" for i in reversed(range(columns))]
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<polygon points="{" ".join(points)}" fill="{colour}" fill-opacity="0.85">'
            f"<title>{escape(row.name)}</title></polygon>"
        )
        base = upper
    for moment in _ticks(end):
        place = left + plot_width * moment / end
        parts.append(_text(place, height - 24, f"{moment:g}", anchor="middle"))
    parts.append(_text(left + plot_width / 2, height - 5, x_label, anchor="middle"))
    parts.append(
        f'<text class="tick" text-anchor="middle" transform="translate(12 {top + plot_height / 2})'
        f' rotate(-90)">{escape(y_label)}</text>'
    )
    return _svg(height, title, parts)


def bars(rows: Sequence[Bar], *, title: str) -> str:
    """Return an SVG image of horizontal bars, in the order of `rows`."""
    row_height, left, right = 28, 150, 190
    height = row_height * len(rows) + 8
    longest = max((row.value for row in rows), default=1.0) or 1.0
    parts: list[str] = []
    for number, row in enumerate(rows):
        y = 4 + row_height * number
        width = (WIDTH - left - right) * row.value / longest
        middle = y + row_height / 2 + 4
        parts.append(_text(left - 10, middle, row.name, anchor="end", style="label"))
        parts.append(
            f'<rect x="{left}" y="{y + 5}" width="{max(width, 1):.1f}" height="{row_height - 10}"'
            f' rx="3" fill="var(--first)"/>'
        )
        parts.append(_text(left + width + 8, middle, f"{row.value:,.0f}", style="label"))
        parts.append(_text(WIDTH - 4, middle, row.note, anchor="end"))
    return _svg(height, title, parts)


def legend(names: Sequence[str]) -> str:
    """Return HTML with the names of series and their colours."""
    entries = [
        f'<span><i style="background:{_COLOURS[n % len(_COLOURS)]}"></i>{escape(name)}</span>'
        for n, name in enumerate(names)
    ]
    return f'<p class="legend">{"".join(entries)}</p>'


def nice_ceiling(value: float) -> float:
    """Return the lowest number of the form 1, 2, 2.5 or 5 times 10**n that is not below `value`.

    Return 1.0 if `value` is not positive.
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value)


def axis_label(value: float) -> str:
    """Return the label of a grid line: an integer with commas, or up to 6 significant digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _ticks(end: float) -> list[float]:
    every = nice_ceiling(end / 8)
    return [round(every * number, 9) for number in range(int(end / every) + 1)]


def _grid(y: Callable[[float], float], ceiling: float, left: int, right: int) -> str:
    lines: list[str] = []
    for quarter in range(5):
        value = ceiling * quarter / 4
        lines.append(
            f'<line x1="{left}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
            ' stroke="var(--line)"/>'
        )
        lines.append(_text(left - 8, y(value) + 4, axis_label(value), anchor="end"))
    return "".join(lines)


def _text(x: float, y: float, text: str, *, anchor: str = "start", style: str = "tick") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{style}" {place}>{escape(text)}</text>'


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
