"""`twinstream stream subjects`: show the number of messages of each subject."""

from __future__ import annotations

from heapq import nlargest
from typing import Final

import click

from twinstream.cli.screen import notes, plain_table, print_json, print_table, to_terminal
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

    On a terminal only the first 20 subjects are shown, unless --all is given. In a pipe, and with
    --all, all of them are shown by name. With --json there is one line for each subject.
    """
    with target.connect() as nc:
        counted = target.jetstream(nc).get_stream(stream).subjects(filter_subject)
        if as_json:
            for subject, count in counted:
                print_json({"subject": subject, "messages": count})
            return
        found = sorted(counted)
    whole = everything or not to_terminal()
    rows = found if whole else nlargest(SHOWN, found, key=lambda each: each[1])
    table = plain_table("subject", "messages", numbers=("messages",))
    for subject, count in rows:
        table.add_row(subject, count)
    print_table(table, "no subjects")
    if len(rows) < len(found):
        notes().print(f"and {len(found) - len(rows):,} more; --all shows them", style="dim")
