"""`twinstream stream ls`: list the streams of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from twinstream.cli.listing_gaps import note_undescribed, undescribed
from twinstream.cli.names import names_option, print_names
from twinstream.cli.screen import plain_table, print_json, print_table
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size
from twinstream.models import encode

if TYPE_CHECKING:
    from twinstream.models import StreamInfo


all_option: Final = click.option(
    "--all",
    "-a",
    is_flag=True,
    expose_value=False,
    hidden=True,
    help="Accepted as by the `nats` command; streams of buckets are always listed here.",
)


@click.command(short_help="List streams.")
@click.option("--subject", metavar="FILTER", help="Only streams that capture this subject.")
@names_option
@all_option
@json_option
@server_options
def ls(target: Target, subject: str | None, names: bool, as_json: bool) -> None:
    """List the streams of a server with their sizes, also those of buckets and object stores.

    Streams without info, for example because they have no leader, are listed on standard error.
    With --json there is one line for each stream: the info from the server, or the reason why there
    is none in "undescribed".
    """
    with target.connect() as nc:
        jet = target.jetstream(nc)
        if names:
            print_names(jet.stream_names(subject), "stream_name", as_json=as_json)
            return
        listing = jet.streams(subject=subject)
        found = sorted(listing, key=lambda info: info.config.name or "")
    if as_json:
        for info in found:
            print_json(encode(info))
        for name, reason in undescribed(listing).items():
            print_json({"config": {"name": name}, "undescribed": reason})
        return
    if found or not undescribed(listing):
        show_streams(found)
    note_undescribed(listing)


def show_streams(found: list[StreamInfo]) -> None:
    """Print a table of streams."""
    table = plain_table(
        "stream",
        "subjects",
        "messages",
        "size",
        "consumers",
        "last message",
        numbers=("messages", "size", "consumers"),
    )
    for info in found:
        state = info.state
        table.add_row(
            info.config.name,
            ", ".join(info.config.subjects or ()) or None,
            state.messages,
            Size(state.bytes),
            state.consumer_count,
            state.last_ts if state.messages else None,
        )
    print_table(table, "no streams")
