"""``twinstream stream subjects``: show the number of messages of each subject."""

from __future__ import annotations

from heapq import nlargest
from itertools import chain
from typing import Final

import click
from rich.cells import cell_len

from twinstream.cli.escapes import harmless
from twinstream.cli.screen import notes, plain_table, print_json, print_text, results, write_lines
from twinstream.cli.target import Target, json_option, server_options

SHOWN: Final = 20


@click.command(short_help="Count the messages of each subject.")
@click.argument("stream")
@click.argument("filter_subject", metavar="[FILTER]", default=">")
@click.option("--all", "everything", is_flag=True, help="All subjects, by name.")
@json_option
@server_options
def subjects(
    target: Target, stream: str, filter_subject: str, everything: bool, as_json: bool
) -> None:
    """Show the subjects of STREAM that match FILTER, ordered by their number of messages.

    Only the first 20 subjects are shown, unless --all is given. With --json there is one line for
    each subject.
    """
    with target.connect() as nc:
        counted = target.jetstream(nc).get_stream(stream).subjects(filter_subject)
        if as_json:
            for subject, count in counted:
                print_json({"subject": subject, "messages": count})
            return
        found = sorted(counted)
    if not found:
        print_text("no subjects")
        return
    if everything:
        _print_all(found)
        return
    rows = nlargest(SHOWN, found, key=lambda each: each[1])
    table = plain_table("subject", "messages", numbers=("messages",))
    for subject, count in rows:
        table.add_row(subject, f"{count:,}")
    results().print(table)
    if len(rows) < len(found):
        notes().print(f"and {len(found) - len(rows):,} more; --all shows them", style="dim")


def _print_all(found: list[tuple[str, int]]) -> None:
    """Print the table without rich. Rich would take about 20 seconds for a million subjects."""
    rows = [(harmless(subject), f"{count:,}") for subject, count in found]
    widest = max(cell_len(text) for text, _ in (("subject", ""), *rows))
    wide = max(len(count) for _, count in (("", "messages"), *rows))
    # Pad to the display width, because some characters are wider than one column.
    lines = (f"{text}{' ' * (widest - cell_len(text))}   {count:>{wide}}" for text, count in rows)
    head = f"{'subject':<{widest}}   {'messages':>{wide}}"
    write_lines(chain((head, "─" * (widest + 3 + wide)), lines))
