"""Output of commands: results to standard output, all other text to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from twinstream.cli.escapes import harmless, json_line
from twinstream.cli.table import Table
from twinstream.cli.value_text import local_time, rfc3339

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

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects. Lines are neither wrapped nor cut in a pipe, and tables are never cut."""
        if not self.is_terminal:
            options.setdefault("soft_wrap", True)
        elif any(isinstance(each, Table) for each in objects):
            options.setdefault("crop", False)
        super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """Raise the current `BrokenPipeError`; rich would end the command with exit code 1."""
        raise


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 message`, `2,000 messages`, `2 batches`."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def results(*, markup: bool = False) -> Console:
    """Return a console for the current standard output.

    If the output is not a terminal, the width of the console is `PIPE_WIDTH`.
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
    """Return a console for progress and notes: standard error, if it is a terminal.

    Otherwise the console prints nothing, so that only errors reach logs and mails of cron.
    """
    quiet = not sys.stderr.isatty()
    return _Screen(stderr=True, highlight=False, markup=markup, emoji=False, quiet=quiet)


def alerts() -> Console:
    """Return a console for standard error, for what makes a result incomplete or wrong."""
    return _Screen(stderr=True, highlight=False, markup=False, emoji=False)


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


def print_table(table: Table, empty: str) -> None:
    """Print a table, or the text `empty` if it has no rows.

    In a pipe, an empty table has no lines.
    """
    if len(table):
        results().print(table)
    else:
        print_none(empty)


def print_none(text: str) -> None:
    """Print to a terminal that a list is empty."""
    if to_terminal():
        print_text(text)


def shown_time(time: datetime) -> str:
    """Return a time as text: in the local zone on a terminal, in RFC 3339 in a pipe."""
    return local_time(time) if to_terminal() else rfc3339(time)


def plain_table(
    *columns: str,
    numbers: Iterable[str] = (),
    names: Iterable[str] | None = None,
    title: str | None = None,
) -> Table:
    """Return an empty table; the arguments are those of `Table`."""
    return Table(*columns, numbers=numbers, names=names, title=title)


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

    It is visible only if `shown`, and only on a terminal.
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

    It is visible only if `shown`, and only on a terminal.
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
