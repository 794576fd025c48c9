"""Tables and pages of settings: for people on a terminal, for programs in a pipe.

In a pipe, each row is one line with tabs between the cells, without a heading. Cells are whole:
numbers without separators, sizes in bytes, times in RFC 3339.

On a terminal, a row of a table is one line. If the rows are too wide, columns of text are
shortened, the last one first; then columns are dropped, the last one first. Names of objects are
never shortened or dropped. A page shows each value whole, continued on indented lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from twinstream.cli.value_text import Size, ago, as_text, in_bytes, in_time, local_time, rfc3339
from twinstream.models.picklable_error import harmless_line

__all__ = ["Cell", "Page", "Table"]

Cell: TypeAlias = str | int | float | Size | datetime | timedelta | Text | None
"""A value in a table. None is a value that does not exist."""

_GAP: Final = "  "
# The width below which a column is not shortened.
_SHORTEST: Final = 12

# The least width of a column of times, so that the others do not move when time passes.
_AGE: Final = len("365d ago")

_BOLD: Final = Style(bold=True)
_DIM: Final = Style(dim=True)


class Table:
    """A table with a row for each object of a list."""

    def __init__(
        self,
        *columns: str,
        numbers: Iterable[str] = (),
        names: Iterable[str] | None = None,
        title: str | None = None,
    ) -> None:
        """Create a table without rows.

        Args:
            columns: The headings.
            numbers: The columns that are aligned to the right.
            names: The columns that are neither shortened nor dropped. None is the first column.
            title: A line above the table on a terminal.
        """
        self._columns: Final = columns
        self._right: Final = [column in set(numbers) for column in columns]
        kept = set(columns[:1] if names is None else names)
        self._is_name: Final = [column in kept for column in columns]
        self._title: Final = title
        self._rows: Final[list[tuple[Cell, ...]]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add_row(self, *cells: Cell) -> None:
        """Add a row. Missing cells at its end are empty."""
        self._rows.append(cells + ("",) * (len(self._columns) - len(cells)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield from self._for_terminal(options.max_width)
        else:
            for row in self._rows:
                yield Segment(_piped(row))

    def _for_terminal(self, width: int) -> Iterable[Segment]:
        """Yield title, head and rows, with columns that fit into `width` if possible."""
        now = datetime.now(UTC)
        texts = [[_cell_text(cell, now) for cell in row] for row in self._rows]
        heads = [harmless_line(column) for column in self._columns]
        widths = [max(map(_width, column)) for column in zip(heads, *texts, strict=True)]
        for cells in self._rows:
            for column, cell in enumerate(cells):
                if isinstance(cell, datetime):
                    widths[column] = max(widths[column], _AGE)
        widths, shown = self._fitted(widths, width, heads)
        if self._title:
            yield from _styled_line(self._title, _BOLD)
        if any(heads):
            yield from _styled_line(self._line(heads, widths, shown), _BOLD)
            wide = sum(widths[column] for column in shown) + len(_GAP) * (len(shown) - 1)
            yield from _styled_line("─" * min(wide, width), _DIM)
        for row, cells in zip(texts, self._rows, strict=True):
            yield from self._styled(row, cells, widths, shown)

    def _fitted(
        self, widths: list[int], width: int, heads: list[str]
    ) -> tuple[list[int], list[int]]:
        """Return the widths of the columns, and the columns that are shown."""
        shown = list(range(len(widths)))

        def excess() -> int:
            return sum(widths[each] for each in shown) + len(_GAP) * (len(shown) - 1) - width

        for column in reversed(shown):
            if excess() > 0 and not (self._is_name[column] or self._right[column]):
                least = min(widths[column], max(_SHORTEST, _width(heads[column])))
                widths[column] = max(least, widths[column] - excess())
        for column in reversed(list(shown)):
            if excess() > 0 and not self._is_name[column]:
                shown.remove(column)
        return widths, shown

    def _line(self, texts: Sequence[str], widths: list[int], shown: list[int]) -> str:
        cells = (self._fit(texts[each], widths[each], self._right[each]) for each in shown)
        return _GAP.join(cells).rstrip()

    def _fit(self, text: str, width: int, right: bool) -> str:
        length = _width(text)
        if length > width:
            return set_cell_size(text, width - 1) + "…"
        space = " " * (width - length)
        return space + text if right else text + space

    def _styled(
        self, texts: list[str], cells: tuple[Cell, ...], widths: list[int], shown: list[int]
    ) -> Iterable[Segment]:
        """Yield a row. Only rows with styled cells consist of several segments."""
        if not any(isinstance(cell, Text) for cell in cells):
            yield Segment(self._line(texts, widths, shown) + "\n")
            return
        for number, each in enumerate(shown):
            cell, is_last = cells[each], number == len(shown) - 1
            text = self._fit(texts[each], widths[each], self._right[each])
            style = Style.parse(str(cell.style)) if isinstance(cell, Text) and cell.style else None
            yield Segment(text.rstrip() if is_last else text, style)
            yield Segment("\n" if is_last else _GAP)


class Page:
    """The settings and the state of one object: a name and a value on each line."""

    def __init__(self, title: str = "") -> None:
        """Create a page without lines. The title is shown on a terminal only."""
        self._title: Final = title
        self._rows: Final[list[tuple[str, Cell]]] = []

    def add_row(self, name: str, value: Cell) -> None:
        """Add a line, unless there is no value."""
        if value is not None and value != "":
            self._rows.append((name, value))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal:
            for row in self._rows:
                yield Segment(_piped(row))
            return
        now = datetime.now(UTC)
        indent = max((_width(name) for name, _ in self._rows), default=0) + len(_GAP)
        if self._title:
            yield from _styled_line(self._title, _BOLD)
        for name, value in self._rows:
            text = Text(_in_full(value, now), value.style if isinstance(value, Text) else "")
            lines = text.wrap(console, max(options.max_width - indent, 20), overflow="fold")
            for number, line in enumerate(lines):
                line.rstrip()
                yield Segment((name if number == 0 else "").ljust(indent))
                yield from line.render(console)
                yield Segment("\n")


def _styled_line(text: str, style: Style) -> Iterable[Segment]:
    """Yield a line whose style ends before its newline."""
    yield Segment(text, style)
    yield Segment("\n")


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _piped(cells: Iterable[Cell]) -> str:
    """Return a row for programs, without blanks at its end. Tabs in cells are escaped."""
    return "\t".join(harmless_line(_exact(cell)) for cell in cells).rstrip() + "\n"


def _exact(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case Size():
            return str(cell.count)
        case datetime():
            return rfc3339(cell)
        case Text():
            return cell.plain
        case _:
            return as_text(cell)


def _cell_text(cell: Cell, now: datetime) -> str:
    """Return a value as a short text for people, with an age instead of a time."""
    match cell:
        case None:
            return "-"
        case bool():
            return as_text(cell)
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,g}"
        case Size():
            return in_bytes(cell.count)
        case datetime():
            return ago(cell, now)
        case timedelta():
            return in_time(cell)
        case Text():
            return harmless_line(cell.plain)
        case _:
            return harmless_line(cell)


def _in_full(cell: Cell, now: datetime) -> str:
    match cell:
        case datetime():
            return f"{local_time(cell)} ({ago(cell, now)})"
        case Size() if cell.count >= 1024:
            return f"{in_bytes(cell.count)} ({cell.count:,} bytes)"
        case str():
            return "\n".join(map(harmless_line, cell.split("\n")))
        case _:
            return _cell_text(cell, now)
