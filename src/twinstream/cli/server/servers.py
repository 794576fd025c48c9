"""`twinstream server info`, `ls` and `ping`: the servers of a system."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click
from attrs import frozen

from twinstream.cli.failures import Failure
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import plain_table, print_json, print_table, print_text, results
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import Size
from twinstream.models import Timestamp

if TYPE_CHECKING:
    from js_sync import Connection

_PING = "$SYS.REQ.SERVER.PING"

_wait_option = click.option(
    "--wait",
    type=Seconds(min=0, min_open=True),
    default="500ms",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for each further answer.",
)


@frozen
class _Answer:
    """The answer of one server, and after how many seconds it arrived."""

    server: dict[str, Any]
    statistics: dict[str, Any]
    seconds: float


@click.command(short_help="Show the connected server.")
@json_option
@server_options
def info(target: Target, as_json: bool) -> None:
    """Show what the connected server says about itself to each client."""
    with target.connect() as nc:
        found = nc.server_info
        began = time.perf_counter()
        nc.flush(timeout=target.timeout)
        took = time.perf_counter() - began
    shown: dict[str, Any] = {
        "name": found.server_name,
        "id": found.server_id,
        "version": found.version,
        "jetstream": found.jetstream,
        "max_payload": found.max_payload,
        "client_id": found.client_id,
    }
    if as_json:
        print_json({**shown, "rtt_seconds": round(took, 7)})
        return
    page = Page()
    for name, value in shown.items():
        if name == "max_payload":
            page.add_row(name, Size(value))
        else:
            page.add_row(name, "yes" if value is True else "no" if value is False else value)
    page.add_row("round trip", f"{took * 1000:.3f} ms")
    results().print(page)


@click.command(short_help="List all servers, with a user of the system account.")
@_wait_option
@json_option
@server_options
def ls(target: Target, wait: float, as_json: bool) -> None:
    """List the servers that answer a ping, with their load.

    This needs a user of the system account. With --json there is one line for each server, as it
    was received.
    """
    with target.connect() as nc:
        found = sorted(_pinged(nc, target, wait), key=lambda each: each.server.get("name", ""))
    if as_json:
        for each in found:
            print_json({"server": each.server, "statsz": each.statistics})
        return
    numbers = ("connections", "subscriptions", "memory", "cpu")
    table = plain_table("server", "cluster", "version", *numbers, "started", numbers=numbers)
    for each in found:
        start = each.statistics.get("start")
        table.add_row(
            each.server.get("name"),
            each.server.get("cluster"),
            each.server.get("ver"),
            each.statistics.get("connections"),
            each.statistics.get("subscriptions"),
            Size(each.statistics.get("mem") or 0),
            each.statistics.get("cpu"),
            Timestamp.parse(start) if start else None,
        )
    print_table(table, "no servers")


@click.command(short_help="Ping all servers, with a user of the system account.")
@_wait_option
@json_option
@server_options
def ping(target: Target, wait: float, as_json: bool) -> None:
    """Ping all servers, and print each answer as it arrives, with its time.

    This needs a user of the system account. With --json there is one line for each server.
    """
    with target.connect() as nc:
        for each in _pinged(nc, target, wait):
            name = each.server.get("name")
            if as_json:
                print_json({"server": name, "seconds": round(each.seconds, 7)})
            else:
                print_text(f"{name}\t{each.seconds * 1000:.3f} ms")


def _pinged(nc: Connection, target: Target, wait: float) -> Iterator[_Answer]:
    """Yield the answers of all servers. Raises `Failure` if none answers."""
    from js_sync.client.core_message import is_unserved_reply

    inbox = f"{target.inbox_prefix}.{uuid4().hex}"
    count = 0
    with nc.subscribe(inbox) as answers:
        begun = time.perf_counter()
        nc.publish(_PING, b"", reply=inbox)
        # The first answer may take longer than the distance between two of them.
        while message := answers.next(timeout=wait if count else target.timeout):
            if is_unserved_reply(message):
                break
            found = json.loads(message.data)
            count += 1
            took = time.perf_counter() - begun
            yield _Answer(found.get("server", {}), found.get("statsz", {}), took)
    if not count:
        raise Failure("no server answered a ping: only users of the system account get answers")
