"""``twinstream consumer info``: show the configuration and the state of a consumer."""

from __future__ import annotations

from datetime import timedelta

import click
from attrs import fields
from rich.console import Console

from twinstream.cli.screen import plain_table, print_json, results
from twinstream.cli.server.cluster_view import add_cluster
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import as_text, in_time
from twinstream.models import ConsumerConfig, ConsumerInfo, SequenceInfo, encode


@click.command(short_help="Show one consumer.")
@click.argument("stream")
@click.argument("consumer")
@json_option
@server_options
def info(target: Target, stream: str, consumer: str, as_json: bool) -> None:
    """Show the configuration and the state of CONSUMER of STREAM."""
    with target.connect() as nc:
        described = target.jetstream(nc).bind_consumer(stream, consumer).info()
    if as_json:
        print_json(encode(described))
        return
    console = results()
    if described.config is not None:
        _show_config(console, described.config)
    _show_state(console, described)


def _show_config(console: Console, config: ConsumerConfig) -> None:
    table = plain_table("configuration", "")
    for member in fields(ConsumerConfig):
        text = as_text(getattr(config, member.name))
        if text:
            table.add_row(member.name, text)
    console.print(table, "")


def _show_state(console: Console, described: ConsumerInfo) -> None:
    table = plain_table("state", "")
    table.add_row("stream", described.stream_name)
    if described.paused:
        left = described.pause_remaining
        whole = timedelta(seconds=round(left.total_seconds())) if left else None
        table.add_row("paused", f"for {in_time(whole)} more" if whole else "yes")
    table.add_row("pending", f"{described.num_pending:,}")
    table.add_row("ack pending", f"{described.num_ack_pending:,}")
    table.add_row("redelivered", f"{described.num_redelivered:,}")
    table.add_row("pulls waiting", f"{described.num_waiting:,}")
    table.add_row("delivered up to", _place(described.delivered))
    table.add_row("acknowledged up to", _place(described.ack_floor))
    for group in described.priority_groups or ():
        table.add_row(f"pinned of {group.group}", group.pinned_client_id or "no client")
    if described.cluster is not None:
        add_cluster(table, described.cluster)
    console.print(table)


def _place(place: SequenceInfo | None) -> str:
    if place is None:
        return ""
    when = f", {place.last_active.isoformat(' ', 'seconds')}" if place.last_active else ""
    return f"{place.stream_seq:,} in the stream{when}"
