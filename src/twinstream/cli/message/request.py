"""`twinstream req`: send a request with core NATS, and print the response."""

from __future__ import annotations

import time

import click

from twinstream.cli.message.core_view import core_as_json, print_core
from twinstream.cli.message.payloads import argument, parse_headers
from twinstream.cli.screen import notes, print_json, write_bytes
from twinstream.cli.target import Target, json_option, server_options


@click.command(short_help="Send a request, and print the response.")
@click.argument("subject")
@click.argument("data", required=False, default="")
@click.option("--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header.")
@click.option("--raw", "-r", is_flag=True, help="Only the bytes of the response.")
@json_option
@server_options
def req(
    target: Target, subject: str, data: str, headers: tuple[str, ...], raw: bool, as_json: bool
) -> None:
    """Send DATA as a request on SUBJECT, and print the first response within --timeout.

    If a stream captures SUBJECT, the response is that of the stream: its name and the sequence, or
    an error. The exit code is 1 if there is no response, also if nothing listens to SUBJECT. A
    response with an error is a response; `twinstream pub` makes a failure of it.
    """
    if raw and as_json:
        raise click.UsageError("give --raw or --json, not both")
    values: dict[str, list[str]] = {}
    for name, value in parse_headers(headers):
        values.setdefault(name, []).append(value)
    with target.connect() as nc:
        begun = time.monotonic()
        found = nc.request(subject, argument(data), headers=values or None, timeout=target.timeout)
        took = time.monotonic() - begun
    if as_json:
        print_json(core_as_json(found))
    elif raw:
        write_bytes(found.data)
    else:
        notes().print(f"response after {took * 1000:.1f} ms", style="dim")
        print_core(found)
