"""`twinstream schedule ls` and `show`: show the schedules of a stream."""

from __future__ import annotations

import click

from twinstream.cli.schedule.view import as_json_object, in_words, next_of
from twinstream.cli.screen import plain_table, print_json, print_table, results
from twinstream.cli.table import Cell, Page
from twinstream.cli.target import Target, json_option, server_options


@click.command(short_help="List the schedules of a stream.")
@click.argument("stream")
@click.option("--subject", metavar="FILTER", default=">", help="Only schedules on these subjects.")
@json_option
@server_options
def ls(target: Target, stream: str, subject: str, as_json: bool) -> None:
    """List the schedules of STREAM and their next times according to the clock of this machine.

    With --json there is one line for each schedule.
    """
    from js_sync.schedules import Schedules

    with target.connect() as nc:
        jet = target.jetstream(nc)
        found = sorted(Schedules(jet, stream).list(subject), key=lambda each: each.subject)
    if as_json:
        for each in found:
            print_json(as_json_object(each))
        return
    table = plain_table("subject", "schedule", "publishes to", "next")
    for each in found:
        due = next_of(each)
        table.add_row(each.subject, str(each.schedule), each.target, due or "not known")
    print_table(table, "no schedules")


@click.command(short_help="Show one schedule.")
@click.argument("stream")
@click.argument("subject")
@json_option
@server_options
def show(target: Target, stream: str, subject: str, as_json: bool) -> None:
    """Show the schedule on SUBJECT of STREAM."""
    from js_sync.schedules import Schedules

    with target.connect() as nc:
        jet = target.jetstream(nc)
        found = Schedules(jet, stream).get(subject)
    if as_json:
        print_json(as_json_object(found))
        return
    due = next_of(found)
    rows: dict[str, Cell] = {
        "subject": found.subject,
        "schedule": str(found.schedule),
        "next": in_words(due) if due else "not known",
        "publishes to": found.target,
        "source": found.source or "",
        "ttl": found.ttl or "",
        "rollup": "yes" if found.rollup else "",
        "headers": ", ".join(f"{name}: {value}" for name, value in found.headers.pairs),
        "data": found.data.decode("utf-8", "backslashreplace"),
        "stored": found.time,
        "sequence": found.seq,
    }
    page = Page()
    for name, value in rows.items():
        page.add_row(name, value)
    results().print(page)
