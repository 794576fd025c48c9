"""`twinstream kv watch`: print the changes of a bucket as they happen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.kv.view import entry_as_json
from twinstream.cli.message.message_view import printable
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.screen import notes, print_json, print_text, shown_time
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from twinstream.records.entry import Entry

# The maximum seconds of a wait for an entry, so that Ctrl-C takes effect soon.
_TURN: Final = 0.25


@click.command(short_help="Show the changes of a bucket as they happen.")
@click.argument("bucket")
@click.argument("filters", nargs=-1)
@click.option("--history", is_flag=True, help="Begin with all kept revisions.")
@click.option("--updates", is_flag=True, help="Skip the existing entries.")
@click.option("--revision", type=SEQUENCE, help="Begin at this revision.")
@click.option("--no-deletes", is_flag=True, help="Without markers of deleted keys.")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many entries.")
@click.option("--once", is_flag=True, help="Stop after the existing entries.")
@json_option
@server_options
def watch(
    target: Target,
    bucket: str,
    filters: tuple[str, ...],
    history: bool,
    updates: bool,
    revision: int | None,
    no_deletes: bool,
    count: int | None,
    once: bool,
    as_json: bool,
) -> None:
    """Show the last entry of each key of BUCKET that matches FILTERS, then each change.

    Continues until Ctrl-C, and across reconnects. With --json there is one line for each entry.
    """
    with asked_to_stop() as asked, target.connect(keep_trying=True) as nc:
        found = target.jetstream(nc).get_key_value(bucket)
        with found.watch(
            filters or None,
            history=history,
            updates_only=updates,
            resume_from=revision,
            deletes=not no_deletes,
        ) as watching:
            shown, is_current = 0, False
            while not asked.is_set() and (count is None or shown < count):
                if watching.is_current is not is_current:
                    is_current = watching.is_current
                    if is_current and once:
                        break
                    if is_current and not as_json:
                        notes().print("these were all existing entries", style="dim")
                entry = watching.next(timeout=_TURN)
                if entry is not None:
                    _show(entry, as_json)
                    shown += 1


def _show(entry: Entry[bytes], as_json: bool) -> None:
    if as_json:
        print_json(entry_as_json(entry))
        return
    time = shown_time(entry.created)
    value = "" if entry.value is None else f": {printable(entry.value)}"
    print_text(f"{time} {entry.revision} {entry.operation.value} {entry.key}{value}")
