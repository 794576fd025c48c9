"""Small charts as SVG text, for pages that show what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 640
HEIGHT: Final = 320
LEFT: Final = 70
RIGHT: Final = 110
TOP: Final = 40
BOTTOM: Final = 50
# Told apart on white and on black, and by people who do not see red and green.
COLOURS: Final = ("#3b7dd8", "#d8793b", "#5aa469", "#9a6fb0", "#b0885a", "#7f7f7f", "#c2577f")


def line_plot(x_title: str, y_title: str, points: Mapping[int, Mapping[str, float]]) -> str:
    """Return a plot with a line for each name, both axes logarithmic."""
    names = list(next(iter(points.values())))
    values = [value for row in points.values() for value in row.values()]
    across, up = (
        Scale.of(list(points), WIDTH - LEFT - RIGHT),
        Scale.of(values, HEIGHT - TOP - BOTTOM),
    )
    body = [_text(LEFT, 22, y_title), _text(WIDTH // 2, HEIGHT - 8, x_title, "middle")]
    for tick in up.ticks():
        y = HEIGHT - BOTTOM - up.at(tick)
        body.append(_line(LEFT, y, WIDTH - RIGHT, y, "#8884"))
        body.append(_text(LEFT - 8, y + 4, f"{tick:,g}", "end"))
    for point in points:
        body.append(_text(LEFT + across.at(point), HEIGHT - BOTTOM + 18, f"{point:,}", "middle"))
    for name, colour in zip(names, COLOURS, strict=False):
        places = [
            (LEFT + across.at(point), HEIGHT - BOTTOM - up.at(row[name]))
            for point, row in points.items()
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        body.append(_text(places[-1][0] + 8, places[-1][1] + 4, name, colour=colour))
    return _svg(HEIGHT, body)


def bar_chart(title: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Return horizontal bars, a group for each key, a bar for each name in it."""
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    longest = max(value for bars in groups.values() for value in bars.values())
    body = [_text(10, 22, title)]
    y = TOP
    for group, bars in groups.items():
        y += 16
        body.append(_text(10, y, group))
        for name, value in bars.items():
            width = (WIDTH - 260) * value / longest
            colour = COLOURS[names.index(name) % len(COLOURS)]
            body.append(_text(165, y + 16, name, "end"))
            place = f'x="172" y="{y + 5}" width="{width:.1f}" height="13"'
            body.append(f'<rect {place} rx="2" fill="{colour}"/>')
            body.append(_text(180 + width, y + 16, f"{value:.2g}"))
            y += 18
        y += 8
    return _svg(y + 10, body)


class Scale:
    """Maps values onto a length, logarithmically."""

    def __init__(self, low: float, high: float, length: float) -> None:
        self._low = math.log10(low)
        self._span = max(math.log10(high) - self._low, 1e-9)
        self._length = length

    @classmethod
    def of(cls, values: Sequence[float], length: float) -> Scale:
        """Return the scale on which all values fit."""
        return cls(min(values), max(values), length)

    def at(self, value: float) -> float:
        """Return where a value lies."""
        return (math.log10(value) - self._low) / self._span * self._length

    def ticks(self) -> list[float]:
        """Return round values on the scale."""
        first, last = math.floor(self._low), math.ceil(self._low + self._span)
        steps = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
        return [step for step in steps if 0 <= math.log10(step) - self._low <= self._span]


def _svg(height: float, body: Sequence[str]) -> str:
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
        f' font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{lines}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#333") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
