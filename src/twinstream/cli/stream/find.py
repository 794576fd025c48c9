"""`twinstream stream find` and `report`: streams by what they are and hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from twinstream.cli.listing_gaps import note_undescribed
from twinstream.cli.names import names_option, print_names
from twinstream.cli.option_types import Span
from twinstream.cli.screen import plain_table, print_json, print_table
from twinstream.cli.stream.list import all_option, show_streams
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size
from twinstream.models import StreamInfo, encode


@click.command(short_help="Find streams by their state and settings.")
@click.option("--empty", is_flag=True, help="Without messages.")
@click.option("--idle", type=Span(), metavar="AGE", help="Without a message for this time.")
@click.option("--created", type=Span(), metavar="AGE", help="Created at least this long ago.")
@click.option("--consumers", type=click.IntRange(min=0), metavar="N", help="At most N consumers.")
@click.option("--replicas", type=click.IntRange(min=1), metavar="N", help="At most N replicas.")
@click.option("--sourced", is_flag=True, help="With sources.")
@click.option("--mirrored", is_flag=True, help="Mirrors of another stream.")
@click.option("--invert", is_flag=True, help="The other streams instead.")
@names_option
@all_option
@json_option
@server_options
def find(
    target: Target,
    empty: bool,
    idle: timedelta | None,
    created: timedelta | None,
    consumers: int | None,
    replicas: int | None,
    sourced: bool,
    mirrored: bool,
    invert: bool,
    names: bool,
    as_json: bool,
) -> None:
    """List the streams to which all given conditions apply.

    Times are compared with the clock of this machine. With --json there is one line for each
    stream: the info from the server.
    """
    now = datetime.now(UTC)
    conditions: list[tuple[bool, Callable[[StreamInfo], bool]]] = [
        (empty, lambda info: not info.state.messages),
        (idle is not None, lambda info: _is_older(_last_use(info), now - (idle or timedelta(0)))),
        (
            created is not None,
            lambda info: _is_older(info.created, now - (created or timedelta(0))),
        ),
        (consumers is not None, lambda info: info.state.consumer_count <= (consumers or 0)),
        (replicas is not None, lambda info: (info.config.num_replicas or 1) <= (replicas or 0)),
        (sourced, lambda info: bool(info.config.sources)),
        (mirrored, lambda info: info.config.mirror is not None),
    ]
    asked = [condition for is_asked, condition in conditions if is_asked]
    if not asked:
        raise click.UsageError("give at least one condition, such as --empty or --idle 7d")
    with target.connect() as nc:
        listing = target.jetstream(nc).streams()
        chosen = [info for info in listing if all(each(info) for each in asked) is not invert]
    chosen.sort(key=lambda info: info.config.name or "")
    if names:
        print_names((info.config.name or "" for info in chosen), "stream_name", as_json=as_json)
    elif as_json:
        for info in chosen:
            print_json(encode(info))
    else:
        show_streams(chosen)
    note_undescribed(listing)


def _last_use(info: StreamInfo) -> datetime | None:
    """Return the time of the last message, or of the creation of a stream without one."""
    return info.state.last_ts if info.state.last_seq else info.created


def _is_older(time: datetime | None, limit: datetime) -> bool:
    return time is not None and time <= limit


_ORDERS: Final[dict[str, Callable[[StreamInfo], Any]]] = {
    "size": lambda info: -info.state.bytes,
    "messages": lambda info: -info.state.messages,
    "consumers": lambda info: -info.state.consumer_count,
    "name": lambda info: info.config.name or "",
}


@click.command(short_help="Show what all streams hold, the largest first.")
@click.option(
    "--sort", type=click.Choice(list(_ORDERS)), default="size", show_default=True, help="The order."
)
@all_option
@json_option
@server_options
def report(target: Target, sort: str, as_json: bool) -> None:
    """Show a line for each stream: storage, consumers, messages, size, losses and replicas.

    "lost" are messages whose data is damaged; "deleted" are gaps within the stream. With --json
    there is one line for each stream: the info from the server.
    """
    with target.connect() as nc:
        listing = target.jetstream(nc).streams()
        found = sorted(listing, key=_ORDERS[sort])
    if as_json:
        for info in found:
            print_json(encode(info))
        note_undescribed(listing)
        return
    numbers = ("consumers", "messages", "size", "lost", "deleted", "replicas")
    table = plain_table("stream", "storage", *numbers, "leader", numbers=numbers)
    for info in found:
        state = info.state
        table.add_row(
            info.config.name,
            str(info.config.storage or "file"),
            state.consumer_count,
            state.messages,
            Size(state.bytes),
            len(state.lost.msgs or ()) if state.lost is not None else 0,
            state.num_deleted or 0,
            info.config.num_replicas or 1,
            info.cluster.leader if info.cluster is not None else None,
        )
    print_table(table, "no streams")
    note_undescribed(listing)
