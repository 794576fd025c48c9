"""Output of commands: results to standard output, all other text to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from twinstream.cli.escapes import harmless, json_line

if TYPE_CHECKING:
    from rich.progress import Progress

PIPE_WIDTH: Final = 120


class _Screen(Console):
    """A console that escapes control characters, and by default ignores markup in text.

    Names, notes and subjects are text from servers and other clients. Callers enable markup only
    for output without such text.
    """

    def render_str(self, text: str, *args: Any, **options: Any) -> Text:
        """Escape the text before rich measures it, so that tables stay aligned."""
        return super().render_str(harmless(text), *args, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape all printed text, also the text of `Text`, progress bars and live displays."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise the current `BrokenPipeError`; rich would end the command with exit code 1."""
        raise


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 message``, ``2,000 messages``, ``2 batches``."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def results(*, markup: bool = False) -> Console:
    """Return a console for the current standard output.

    If the output is not a terminal, the width of the console is :data:`PIPE_WIDTH`.
    """
    _write_anything(sys.stdout)
    console = _Screen(highlight=False, markup=markup, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def _write_anything(stream: TextIO) -> None:
    """Let a stream write lone surrogates as escapes instead of raising an error.

    JSON files and file names can contain lone surrogates. JSON parsers can decode the escapes.
    """
    if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors="backslashreplace")


def notes(*, markup: bool = False) -> Console:
    """Return a console for standard error, for progress and notes."""
    return _Screen(stderr=True, highlight=False, markup=markup, emoji=False)


def print_json(value: object) -> None:
    """Print one JSON document on one line of standard output."""
    _write_anything(sys.stdout)
    click.echo(json_line(value))


def print_text(text: str) -> None:
    """Print text to standard output, with escapes for control characters.

    Unlike a console, this neither wraps long lines nor replaces tabs by spaces. Use it for values,
    and for sentences with names.
    """
    _write_anything(sys.stdout)
    click.echo(harmless(text))


def to_terminal() -> bool:
    """Whether standard output is a terminal, to which only harmless text may be written."""
    return sys.stdout.isatty()


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output unchanged, without a newline after them."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output unchanged: without wrapping, and without escapes."""
    _write_anything(sys.stdout)
    click.echo("\n".join(lines))


def plain_table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Return a table without borders; the columns in ``numbers`` are right-aligned."""
    from rich import box

    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False, pad_edge=False
    )
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def remark(console: Console, text: str) -> None:
    """Print a paragraph that is indented by two characters."""
    from rich.padding import Padding

    console.print(Padding(text, (0, 0, 0, 2)))


def _can_update(console: Console) -> bool:
    """Whether a console writes to a terminal that can replace printed lines.

    `FORCE_COLOR` does not make a terminal of a file.
    """
    return console.is_interactive and console.file.isatty()


def progress(console: Console, *, shown: bool = True) -> Progress:
    """Return a progress display with count, total and time.

    It is visible only if ``shown``, and only on a terminal.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("  {task.description}", markup=False),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not (shown and _can_update(console)),
    )


def transfer(console: Console, *, shown: bool = True) -> Progress:
    """Return a progress display with bytes, speed and remaining time.

    It is visible only if ``shown``, and only on a terminal.
    """
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("  {task.description}", markup=False),
        BarColumn(bar_width=32),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not (shown and _can_update(console)),
    )
