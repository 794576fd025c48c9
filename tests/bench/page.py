"""The tables of docs/speed.md: each between marks that name the command which writes it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from twinstream.cli.screen import notes, plain_table, results
from tests.bench.suite import ROOT, circumstances

DOCS: Final = ROOT / "docs"
PAGE: Final = DOCS / "speed.md"

Rows = Sequence[Sequence[str]]


def show(
    name: str,
    columns: Sequence[str],
    rows: Rows,
    *,
    page: bool,
    note: str = "",
    python: str = sys.executable,
) -> None:
    """Print a table; with `page` it also replaces the one of that name on the page."""
    table = plain_table(*columns, numbers=tuple(columns[1:]))
    for row in rows:
        table.add_row(*row)
    results().print(table)
    if note:
        results().print(note)
    if page:
        found = circumstances(python)
        where = (
            f"Python {found['python']}, nats-server {found['nats-server']},"
            f" {found['processors']} processors."
        )
        text = f"{markdown(columns, rows)}\n{f'{note} {where}'.strip()}\n"
        put(PAGE, f"<!-- {name}, written by ", f"<!-- end of {name} -->\n", text)
        notes().print(f"{PAGE} written")


def markdown(columns: Sequence[str], rows: Rows) -> str:
    """Return a table in Markdown, all but the first column flush right."""
    lines = ["| " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def put(path: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks; the first is the line that starts with `begin`."""
    old = path.read_text("utf-8")
    before, mark, rest = old.partition(begin)
    line, _, rest = rest.partition("\n")
    _, closed, after = rest.partition(end)
    if not mark or not closed:
        raise click.ClickException(f"{path} has no place for the figures: {begin!r} and {end!r}")
    path.write_text(f"{before}{mark}{line}\n{text}{end}{after}", "utf-8")
