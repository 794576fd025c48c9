"""`twinstream reply`: answer requests with core NATS, to try out a client."""

from __future__ import annotations

from typing import Final

import click

from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.core_view import core_as_json, print_core
from twinstream.cli.message.payloads import argument, parse_headers
from twinstream.cli.message.reconnects import LinkWatch
from twinstream.cli.message.template_words import TemplateWords
from twinstream.cli.screen import notes, print_json
from twinstream.cli.target import Target, json_option, server_options

# The maximum seconds of a wait for a request, so that Ctrl-C takes effect soon.
_TURN: Final = 0.5


@click.command(short_help="Answer the requests on a subject.")
@click.argument("subject")
@click.argument("data", required=False)
@click.option("--echo", is_flag=True, help="Answer with the payload of the request.")
@click.option("--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header.")
@click.option("--queue", default="", metavar="NAME", help="Share the requests with this group.")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many requests.")
@json_option
@server_options
def reply(
    target: Target,
    subject: str,
    data: str | None,
    echo: bool,
    headers: tuple[str, ...],
    queue: str,
    count: int | None,
    as_json: bool,
) -> None:
    """Print each request on SUBJECT, and answer it with DATA, until Ctrl-C.

    Messages that expect no answer are printed only. With --json there is one line for each request.
    """
    if echo is (data is not None):
        raise click.UsageError("give DATA or --echo")
    words = TemplateWords("--echo answers with the payload of the request")
    words.look("--header", *headers)
    words.look("DATA", data)
    values: dict[str, list[str]] = {}
    for name, value in parse_headers(headers):
        values.setdefault(name, []).append(value)
    with (
        asked_to_stop() as stop,
        target.connect(keep_trying=True) as nc,
        nc.subscribe(subject, queue=queue) as found,
    ):
        nc.flush(timeout=target.timeout)
        notes().print(f"listening on {subject}", style="dim")
        link, number = LinkWatch(nc), 0
        while not stop.is_set() and (count is None or number < count):
            message = found.next(timeout=_TURN)
            link.look()
            if message is None:
                continue
            number += 1
            if as_json:
                print_json(core_as_json(message))
            else:
                print_core(message, head=f"#{number}  {message.subject}")
            if message.reply:
                answer = message.data if data is None else argument(data)
                nc.publish(message.reply, answer, headers=values or None)
        nc.flush(timeout=target.timeout)
