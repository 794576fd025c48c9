"""`twinstream sub`: print messages of core NATS as they arrive."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, Final

import click

from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.core_view import core_as_json, print_core
from twinstream.cli.message.reconnects import LinkWatch
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import notes, print_json, print_text, shown_time, write_bytes
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_sync import Subscription
    from js_sync.client.core_message import CoreMessage

# The maximum seconds of a wait for a message, so that Ctrl-C takes effect soon.
_TURN: Final = 0.5


@click.command(short_help="Print the messages of a subject as they arrive.")
@click.argument("subject")
@click.option("--queue", default="", metavar="NAME", help="Share the messages with this group.")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many messages.")
@click.option(
    "--wait",
    type=Seconds(min=0),
    metavar="DURATION",
    help="Stop after this time without a message; by default wait forever.",
)
@click.option("--timestamp", "-t", is_flag=True, help="Print when each message arrived.")
@click.option("--subjects-only", is_flag=True, help="Print only the subjects.")
@click.option("--raw", "-r", is_flag=True, help="Only the bytes of the payloads, a line each.")
@json_option
@server_options
def sub(
    target: Target,
    subject: str,
    queue: str,
    count: int | None,
    wait: float | None,
    timestamp: bool,
    subjects_only: bool,
    raw: bool,
    as_json: bool,
) -> None:
    """Print the messages on SUBJECT as they arrive, until Ctrl-C.

    This is a subscription of core NATS: it has no past, and messages that arrive while the
    connection is lost are missed. `twinstream consume` reads a stream. With --json there is one
    line for each message.
    """
    if sum((raw, as_json, subjects_only)) > 1:
        raise click.UsageError("give one of --raw, --subjects-only and --json")
    with (
        asked_to_stop() as stop,
        target.connect(keep_trying=True) as nc,
        nc.subscribe(subject, queue=queue) as found,
    ):
        nc.flush(timeout=target.timeout)
        notes().print(f"listening on {subject}", style="dim")
        link, number = LinkWatch(nc), 0
        while count is None or number < count:
            message = _next_message(found, link, stop, wait)
            if message is None:
                break
            number += 1
            if as_json:
                print_json(core_as_json(message))
            elif raw:
                write_bytes(message.data + b"\n")
            elif subjects_only:
                print_text(message.subject)
            else:
                when = f"{shown_time(datetime.now(UTC))}  " if timestamp else ""
                print_core(message, head=f"{when}#{number}  {message.subject}")


def _next_message(
    found: Subscription, link: LinkWatch, stop: Event, wait: float | None
) -> CoreMessage | None:
    """Return the next message, or None after `wait` seconds or when `stop` is set.

    Meanwhile, print changes of the connection's state.
    """
    deadline = None if wait is None else time.monotonic() + wait
    while not stop.is_set():
        remaining = _TURN if deadline is None else deadline - time.monotonic()
        # Wait for a moment even if no time is left: a message may be there already.
        message = found.next(timeout=max(min(remaining, _TURN), 0.01))
        link.look()
        if message is not None:
            return message
        if deadline is not None and time.monotonic() >= deadline:
            return None
    return None
