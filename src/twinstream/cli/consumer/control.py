"""`twinstream consumer rm`, `pause`, `resume`, `reset`, `unpin` and `step-down`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from twinstream.cli import option_types
from twinstream.cli.confirm import sure, unasked_option, yes_option
from twinstream.cli.screen import counted, print_json, print_text, shown_time
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_sync import Consumer


@click.command(short_help="Delete a consumer.")
@click.argument("stream")
@click.argument("consumer")
@yes_option
@json_option
@server_options
def rm(target: Target, stream: str, consumer: str, yes: bool, as_json: bool) -> None:
    """Delete CONSUMER of STREAM, with its record of deliveries and acknowledgements."""
    with target.connect() as nc:
        handle = target.jetstream(nc).get_consumer(stream, consumer)
        sure(f"Delete {_described(handle)}?", yes=yes)
        handle.delete()
    _done(handle, "is deleted", as_json, deleted=True)


@click.command(short_help="Pause the deliveries of a consumer.")
@click.argument("stream")
@click.argument("consumer")
@click.argument("length", type=option_types.Span())
@unasked_option
@json_option
@server_options
def pause(target: Target, stream: str, consumer: str, length: timedelta, as_json: bool) -> None:
    """Pause CONSUMER of STREAM for LENGTH, such as 90s, 1h30m or 7d (server 2.11)."""
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_consumer(stream, consumer)
        response = handle.pause(length)
    until = response.pause_until
    shown = shown_time(until) if until else "later"
    _done(
        handle,
        f"is paused until {shown}",
        as_json,
        paused_until=until.rfc3339() if until else None,
    )


@click.command(short_help="End a pause.")
@click.argument("stream")
@click.argument("consumer")
@unasked_option
@json_option
@server_options
def resume(target: Target, stream: str, consumer: str, as_json: bool) -> None:
    """End the pause of CONSUMER of STREAM (server 2.11)."""
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_consumer(stream, consumer)
        handle.resume()
    _done(handle, "delivers again", as_json, paused_until=None)


@click.command(short_help="Restart a consumer from a sequence.")
@click.argument("stream")
@click.argument("consumer")
@click.option("--seq", type=option_types.SEQUENCE, help="The first sequence to deliver.")
@yes_option
@json_option
@server_options
def reset(
    target: Target, stream: str, consumer: str, seq: int | None, yes: bool, as_json: bool
) -> None:
    """Restart CONSUMER of STREAM from an earlier or later message (server 2.14).

    Delivery continues at --seq, or after the acknowledgement floor. Messages that are pending
    acknowledgement are delivered again.
    """
    with target.connect() as nc:
        handle = target.jetstream(nc).get_consumer(stream, consumer)
        where = f"at sequence {seq:,}" if seq else "after its acknowledgement floor"
        sure(f"Restart {_described(handle)} {where}?", yes=yes)
        pending = handle.reset(seq).num_pending
    _done(
        handle,
        f"was reset and has {counted(pending or 0, 'message')} to deliver",
        as_json,
        num_pending=pending,
    )


@click.command(short_help="Let another client be the pinned one.")
@click.argument("stream")
@click.argument("consumer")
@click.argument("group")
@unasked_option
@json_option
@server_options
def unpin(target: Target, stream: str, consumer: str, group: str, as_json: bool) -> None:
    """Remove the pin of priority GROUP, so that the server can pin another client (server 2.11)."""
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_consumer(stream, consumer)
        handle.unpin(group)
    _done(handle, f"has no pinned client of {group} now", as_json, unpinned=group)


@click.command("step-down", short_help="Let another server lead a consumer.")
@click.argument("stream")
@click.argument("consumer")
@click.option("--prefer", metavar="SERVER", help="The new leader, if possible (server 2.11).")
@unasked_option
@json_option
@server_options
def step_down(
    target: Target, stream: str, consumer: str, prefer: str | None, as_json: bool
) -> None:
    """Ask the leader of CONSUMER of STREAM to step down. Does not wait for the new leader."""
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_consumer(stream, consumer)
        handle.step_down(preferred=prefer)
    _done(handle, "gets another leader", as_json, stepped_down=True)


def _described(consumer: Consumer) -> str:
    info = consumer.cached_info
    state = (
        f" ({counted(info.num_ack_pending or 0, 'message')} pending acknowledgement)"
        if info is not None
        else ""
    )
    return f"{consumer.stream_name}/{consumer.name}{state}"


def _done(consumer: Consumer, text: str, as_json: bool, **members: object) -> None:
    if as_json:
        print_json({"stream_name": consumer.stream_name, "consumer_name": consumer.name, **members})
    else:
        print_text(f"{consumer.stream_name}/{consumer.name} {text}")
