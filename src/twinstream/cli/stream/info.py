"""`twinstream stream info`: show the configuration, state and consumers of a stream."""

from __future__ import annotations

from datetime import timedelta

import click
from attrs import fields
from rich.console import Console

from twinstream.cli.consumer.view import consumer_table
from twinstream.cli.listing_gaps import note_undescribed, undescribed
from twinstream.cli.screen import print_json, print_table, results
from twinstream.cli.server.cluster_view import add_cluster
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size, in_time, setting
from twinstream.models import StreamInfo, StreamSourceInfo, encode


@click.command(short_help="Show one stream.")
@click.argument("stream")
@json_option
@server_options
def info(target: Target, stream: str, as_json: bool) -> None:
    """Show the configuration, the state and the consumers of STREAM.

    With --json there is one document: the server's stream info, with the consumers as "consumers".
    A consumer that the server lists without its info has the reason in "undescribed".
    """
    with target.connect() as nc:
        jet = target.jetstream(nc)
        handle = jet.get_stream(stream)
        described = handle.info()
        listing = handle.consumers()
        consumers = sorted(listing, key=lambda consumer: consumer.name)
    if as_json:
        unknown = [
            {"name": name, "undescribed": reason} for name, reason in undescribed(listing).items()
        ]
        listed = [*(encode(each) for each in consumers), *unknown]
        print_json({**encode(described), "consumers": listed})
        return
    console = results()
    show_config(console, described)
    show_state(console, described)
    if consumers or not undescribed(listing):
        print_table(consumer_table(consumers), "no consumers")
    note_undescribed(listing)


def show_config(console: Console, described: StreamInfo) -> None:
    """Print the settings of a stream."""
    page = Page("configuration")
    for member in fields(type(described.config)):
        page.add_row(member.name, setting(member.name, getattr(described.config, member.name)))
    console.print(page, "")


def show_state(console: Console, described: StreamInfo) -> None:
    """Print the state of a stream."""
    state = described.state
    page = Page("state")
    page.add_row("messages", state.messages)
    page.add_row("size", Size(state.bytes))
    page.add_row("sequences", f"{state.first_seq:,} to {state.last_seq:,}")
    if state.num_deleted:
        page.add_row("deleted within", state.num_deleted)
    if state.num_subjects:
        page.add_row("subjects", state.num_subjects)
    if state.messages and state.first_ts and state.last_ts:
        page.add_row("first message", state.first_ts)
        page.add_row("last message", state.last_ts)
    if described.mirror is not None:
        page.add_row("mirror of", _origin(described.mirror))
    for source in described.sources or ():
        page.add_row("source", _origin(source))
    if described.cluster is not None:
        add_cluster(page, described.cluster)
    console.print(page, "")


def _origin(origin: StreamSourceInfo) -> str:
    """Return a text with the name and the lag of an origin, and its error if there is one."""
    of = f"{origin.name} {origin.filter_subject}" if origin.filter_subject else str(origin.name)
    parts = [of, f"{origin.lag or 0:,} behind"]
    seconds = origin.active.total_seconds() if origin.active is not None else -1
    if seconds < 0:  # the server has received no message from the origin yet
        parts.append("never heard")
    else:
        parts.append(f"heard {in_time(timedelta(seconds=round(seconds, 1)))} ago")
    if origin.error is not None:
        parts.append(origin.error.description or f"error {origin.error.err_code}")
    return ", ".join(parts)
