"""`twinstream consumer report`: how far the consumers of a stream are."""

from __future__ import annotations

import click

from twinstream.cli.listing_gaps import note_undescribed
from twinstream.cli.screen import plain_table, print_json, print_table
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import ConsumerInfo, encode


@click.command(short_help="Show how far the consumers of a stream are.")
@click.argument("stream")
@json_option
@server_options
def report(target: Target, stream: str, as_json: bool) -> None:
    """Show a line for each consumer of STREAM, the one with the most messages to deliver first.

    "pending" is the share of the stream's messages that it has not delivered. With --json there is
    one line for each consumer: the info from the server.
    """
    with target.connect() as nc:
        handle = target.jetstream(nc).get_stream(stream)
        messages = handle.info().state.messages
        listing = handle.consumers()
        found = sorted(listing, key=lambda info: (-(info.num_pending or 0), info.name))
    if as_json:
        for info in found:
            print_json(encode(info))
        note_undescribed(listing)
        return
    numbers = ("ack pending", "redelivered", "unprocessed", "pending", "ack floor")
    table = plain_table("consumer", "mode", "ack policy", *numbers, numbers=numbers)
    for info in found:
        config = info.config
        table.add_row(
            info.name,
            _mode(info),
            str(config.ack_policy) if config is not None else None,
            info.num_ack_pending,
            info.num_redelivered,
            info.num_pending,
            f"{(info.num_pending or 0) / messages:.0%}" if messages else None,
            info.ack_floor.stream_seq if info.ack_floor is not None else None,
        )
    print_table(table, "no consumers")
    note_undescribed(listing)


def _mode(info: ConsumerInfo) -> str | None:
    if info.config is None:
        return None
    return "push" if info.config.deliver_subject else "pull"
