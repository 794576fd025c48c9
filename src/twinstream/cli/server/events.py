"""`twinstream events`: show the advisories and metrics that servers publish."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Event as Flag
from typing import TYPE_CHECKING, Final

import click
from rich.live import Live
from rich.text import Text

from twinstream.cli.failures import Failure, arguments_judged
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.message_view import printable
from twinstream.cli.message.reconnects import LinkWatch
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import (
    alerts,
    counted,
    notes,
    plain_table,
    print_json,
    results,
    to_terminal,
)
from twinstream.cli.server.event_view import as_json as event_as_json
from twinstream.cli.server.event_view import describe
from twinstream.cli.table import Table
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import rfc3339
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.header_text import valid

if TYPE_CHECKING:
    from js_sync import Event, Events

# The maximum seconds of a wait for an event, so that Ctrl-C takes effect soon.
_TURN: Final = 0.25
# The kinds of events that are printed in red.
_LOUD: Final = {"max_deliver", "terminated", "consumer_quorum_lost", "stream_quorum_lost",
                "server_out_of_space", "api_limit_reached", "stream_batch_abandoned"}  # fmt: skip


@click.command(short_help="Show advisories and metrics as they arrive.")
@click.option("--stream", metavar="NAME", help="Only events of this stream.")
@click.option("--consumer", metavar="NAME", help="Only events of this consumer.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind, such as max_deliver."
)
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many events.")
@click.option(
    "--wait",
    type=Seconds(min=0),
    metavar="DURATION",
    help="Stop after this time without an event; by default wait forever.",
)
@click.option("--table", is_flag=True, help="Show counts by kind in a table, instead of lines.")
@json_option
@server_options
def events(
    target: Target,
    stream: str | None,
    consumer: str | None,
    kinds: tuple[str, ...],
    count: int | None,
    wait: float | None,
    table: bool,
    as_json: bool,
) -> None:
    """Show the servers' events from now on: streams and consumers created and deleted, messages
    refused, terminated or delivered too often, leaders elected, calls of the API, and more.

    Ctrl-C ends the command cleanly. After a lost connection, the command reconnects without a time
    limit; events in between are missed. With --json there is one line for each event.

    \b
    twinstream events --stream ORDERS
    twinstream events --kind max_deliver --kind terminated --json
    """  # noqa: D301, D205  # click needs the backspace, and joins the lines
    if table and as_json:
        raise click.UsageError("give --table or --json, not both")
    shown = 0
    with ExitStack() as stack:
        nc = stack.enter_context(target.connect(keep_trying=True))
        stop = stack.enter_context(asked_to_stop())
        jet = target.jetstream(nc)
        with arguments_judged():
            listening = jet.events(stream_name=stream, consumer_name=consumer, kinds=kinds or None)
        source = stack.enter_context(listening)
        # Make sure that the subscription exists before the note is printed.
        nc.flush()
        notes().print(f"listening to {', '.join(source.subjects)}", style="dim")
        show = stack.enter_context(_board()) if table else partial(_print, as_json=as_json)
        epoch, link = nc.stats.connects, LinkWatch(nc)
        while count is None or shown < count:
            if HOOKS:
                reached("command: before event", nc)
            event = _next_event(source, wait, stop, link)
            if event is None:
                break
            shown += 1
            show(event)
        is_up = nc.is_connected
        was_interrupted = not is_up or nc.stats.connects != epoch
    notes().print(counted(shown, "event"), style="dim")
    if was_interrupted and not is_up and not stop.is_set():
        raise Failure("the connection to the server is lost, and no event arrived since")
    if was_interrupted:
        alerts().print("the connection was lost meanwhile: events may be missing", style="yellow")


@contextmanager
def _board() -> Generator[Callable[[Event], None]]:
    """Yield a function that counts an event in a table on the terminal, and updates the table."""
    board = Board()
    with Live(console=results(), auto_refresh=False) as live:

        def show(event: Event) -> None:
            board.enter(event)
            live.update(board.table(), refresh=True)

        yield show


def _next_event(source: Events, wait: float | None, stop: Flag, link: LinkWatch) -> Event | None:
    """Return the next event, or None after `wait` seconds or when `stop` is set.

    Meanwhile, print changes of the connection's state.
    """
    deadline = None if wait is None else time.monotonic() + wait
    while not stop.is_set():
        remaining = _TURN if deadline is None else deadline - time.monotonic()
        # Wait for a moment even if no time is left: a message may be there already.
        event = source.next(timeout=max(min(remaining, _TURN), 0.01))
        if event is not None:
            return event
        link.look()
        if deadline is not None and time.monotonic() >= deadline:
            return None
    return None


def _print(event: Event, as_json: bool) -> None:
    """Print an event as a line, after a note for each gap before it; or print it as JSON."""
    if as_json:
        print_json(event_as_json(event))
        return
    console = results()
    for gap in _gaps(event):
        console.print(gap, style="yellow")
    line = Text(_clock(event), style="dim")
    line.append(f"  {event.kind or 'unreadable':<22}", style=_colour(event))
    line.append(f"  {_sentence(event)}")
    if event.domain:
        line.append(f"  [domain {event.domain}]", style="dim")
    console.print(line, soft_wrap=True)


def _gaps(event: Event) -> list[str]:
    found: list[str] = []
    if event.missed:
        found.append(f"{event.missed:,} events were dropped before this: they came too fast")
    if event.reconnected:
        found.append("the connection was lost before this: events may be missing")
    return found


def _sentence(event: Event) -> str:
    if event.problem:
        return f"{printable(event.raw)} ({event.problem})"
    return printable(valid(describe(event.record)).encode())


def _clock(event: Event) -> str:
    if event.time is None:
        return "--:--:--.---"
    if not to_terminal():
        return rfc3339(event.time)
    return event.time.astimezone().strftime("%H:%M:%S.%f")[:-3]


def _colour(event: Event) -> str:
    if event.problem or event.kind in _LOUD:
        return "bold red"
    return "yellow" if event.kind == "nak" else "cyan"


class Board:
    """The number of events and the last event of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._last: dict[str, Event] = {}

    def enter(self, event: Event) -> None:
        """Count an event, and store it as the last event of its kind."""
        kind = event.kind or "unreadable"
        self._counts[kind] += 1
        self._last[kind] = event

    def table(self) -> Table:
        """Return the counts as a table, the most frequent kind first."""
        table = plain_table("kind", "count", "last at", "the last one", numbers=("count",))
        for kind, count in self._counts.most_common():
            event = self._last[kind]
            style = _colour(event)
            table.add_row(Text(kind, style=style), count, _clock(event), Text(_sentence(event)))
        return table
