"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any, Final, TextIO

import click
from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

PIPE_WIDTH: Final = 120


class _Screen(Console):
    """Prints text as it is, without markup: names, notes and subjects come from strangers.

    Markup is for those who ask for it and print no stranger's text.
    """

    def render_str(self, text: str, *args: Any, **options: Any) -> Text:
        """Escape what would act on a terminal."""
        return super().render_str(harmless(text), *args, **options)


def counted(number: int, noun: str) -> str:
    """Return how many there are of something: ``1 message``, ``2,000 messages``, ``2 batches``."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def harmless(text: str) -> str:
    """Return a stranger's text with escapes for every character that would act on a terminal."""
    return "\n".join(map(_harmless_line, text.split("\n")))


def _harmless_line(line: str) -> str:
    # Most lines need nothing, and a look at each of their characters takes its time.
    if line.replace("\t", "").isprintable():
        return line
    return "".join(c if c.isprintable() or c == "\t" else json.dumps(c)[1:-1] for c in line)


def results(*, markup: bool = False) -> Console:
    """Return a console on standard output as it is now.

    In a pipe, where the width of the screen means nothing, lines may be :data:`PIPE_WIDTH` long.
    """
    _write_anything(sys.stdout)
    console = _Screen(highlight=False, markup=markup, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def _write_anything(stream: TextIO) -> None:
    """Have lone surrogates, which JSON files and names of files can hold, written as escapes.

    In JSON such an escape is read as the surrogate again.
    """
    if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors="backslashreplace")


def notes(*, markup: bool = False) -> Console:
    """Return a console on standard error, for progress and remarks."""
    return _Screen(stderr=True, highlight=False, markup=markup, emoji=False)


def print_json(value: object) -> None:
    """Print one JSON document on one line of standard output."""
    _write_anything(sys.stdout)
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def write_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output as they are, without the work of a console."""
    _write_anything(sys.stdout)
    click.echo("\n".join(lines))


def plain_table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Return a table with few lines; the columns in ``numbers`` are set flush right."""
    from rich import box

    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False, pad_edge=False
    )
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def remark(console: Console, text: str) -> None:
    """Print a paragraph, indented below the heading of a step."""
    console.print(Padding(text, (0, 0, 0, 2)))


def progress(console: Console, *, shown: bool = True) -> Progress:
    """Return a progress display that shows count, total and time; nothing if not ``shown``."""
    return Progress(
        TextColumn("  {task.description}", markup=False),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not shown,
    )


def transfer(console: Console, *, shown: bool = True) -> Progress:
    """Return a progress display in bytes, with speed and remaining time; nothing if not shown."""
    return Progress(
        TextColumn("  {task.description}", markup=False),
        BarColumn(bar_width=32),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not shown,
    )
