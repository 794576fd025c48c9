"""`twinstream consumer ls`: list the consumers of a stream."""

from __future__ import annotations

import click

from twinstream.cli.consumer.view import consumer_table
from twinstream.cli.listing_gaps import note_undescribed, undescribed
from twinstream.cli.names import names_option, print_names
from twinstream.cli.screen import print_json, print_table
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import encode


@click.command(short_help="List the consumers of a stream.")
@click.argument("stream")
@names_option
@json_option
@server_options
def ls(target: Target, stream: str, names: bool, as_json: bool) -> None:
    """List the consumers of STREAM with their progress.

    Consumers without info, for example because they have no leader, are listed on standard error.
    With --json there is one line for each consumer: the info from the server, or the reason why
    there is none in "undescribed".
    """
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_stream(stream)
        if names:
            print_names(handle.consumer_names(), "name", as_json=as_json, stream_name=stream)
            return
        listing = handle.consumers()
        found = sorted(listing, key=lambda info: info.name)
    if as_json:
        for info in found:
            print_json(encode(info))
        for name, reason in undescribed(listing).items():
            print_json({"stream_name": stream, "name": name, "undescribed": reason})
        return
    if found or not undescribed(listing):
        print_table(consumer_table(found), "no consumers")
    note_undescribed(listing)
