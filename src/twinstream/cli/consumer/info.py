"""`twinstream consumer info`: show the configuration and the state of a consumer."""

from __future__ import annotations

from datetime import timedelta

import click
from attrs import fields
from rich.console import Console

from twinstream.cli.screen import print_json, results
from twinstream.cli.server.cluster_view import add_cluster
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import in_time, setting
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
        show_config(console, described.config)
    show_state(console, described)


def show_config(console: Console, config: ConsumerConfig) -> None:
    """Print the settings of a consumer."""
    page = Page("configuration")
    for member in fields(ConsumerConfig):
        page.add_row(member.name, setting(member.name, getattr(config, member.name)))
    console.print(page, "")


def show_state(console: Console, described: ConsumerInfo) -> None:
    """Print the state of a consumer."""
    page = Page("state")
    page.add_row("stream", described.stream_name)
    if described.paused:
        pause = described.pause_remaining
        whole = timedelta(seconds=round(pause.total_seconds())) if pause else None
        page.add_row("paused", f"for {in_time(whole)} more" if whole else "yes")
    page.add_row("pending", described.num_pending)
    page.add_row("ack pending", described.num_ack_pending)
    page.add_row("redelivered", described.num_redelivered)
    page.add_row("pulls waiting", described.num_waiting)
    _add_place(page, "delivered", described.delivered)
    _add_place(page, "acknowledged", described.ack_floor)
    for group in described.priority_groups or ():
        page.add_row(f"pinned of {group.group}", group.pinned_client_id or "no client")
    if described.cluster is not None:
        add_cluster(page, described.cluster)
    console.print(page)


def _add_place(page: Page, verb: str, place: SequenceInfo | None) -> None:
    """Add the last delivered sequences, or those up to which everything is acknowledged.

    The sequence of the consumer counts deliveries, the other one is the sequence in the stream.
    """
    if place is not None:
        page.add_row(f"{verb} up to, in the stream", place.stream_seq)
        page.add_row(f"{verb} up to, of the consumer", place.consumer_seq)
        page.add_row(f"last {verb}", place.last_active)
