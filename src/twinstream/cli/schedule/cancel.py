"""`twinstream schedule cancel`: remove a schedule."""

from __future__ import annotations

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.schedule.view import as_json_object
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.target import Target, json_option, server_options


@click.command(short_help="Remove a schedule from a stream.")
@click.argument("stream")
@click.argument("subject")
@yes_option
@json_option
@server_options
def cancel(target: Target, stream: str, subject: str, yes: bool, as_json: bool) -> None:
    """Remove the schedule on SUBJECT of STREAM. Messages that it has published are kept.

    A schedule that is replaced while the command asks is kept. With --json the removed schedule
    is printed.
    """
    from js_sync.schedules import Schedules

    with target.connect() as nc:
        jet = target.jetstream(nc)
        schedules = Schedules(jet, stream)
        found = schedules.get(subject)
        sure(f"Cancel {subject} ({found.schedule}, publishes to {found.target})?", yes=yes)
        removed = schedules.cancel(found)
    if as_json:
        print_json(as_json_object(removed))
    else:
        print_text(f"cancelled {removed.subject}: {removed.schedule}")
