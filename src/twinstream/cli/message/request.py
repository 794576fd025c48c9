"""`twinstream req`: send a request with core NATS, and print the response or several."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from twinstream.cli.message.core_view import core_as_json, print_core
from twinstream.cli.message.payloads import argument, parse_headers
from twinstream.cli.message.template_words import TemplateWords
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import notes, print_json, write_bytes
from twinstream.cli.target import Target, json_option, server_options
from twinstream.core.deadline import Deadline
from twinstream.errors import NoResponders, RequestTimeout

if TYPE_CHECKING:
    from js_sync import CoreMessage, Subscription


@click.command(short_help="Send a request, and print the response.")
@click.argument("subject")
@click.argument("data", required=False, default="")
@click.option("--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header.")
@click.option(
    "--replies",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="How many responses to wait for; 0 for all within --timeout.",
)
@click.option(
    "--reply-timeout",
    type=Seconds(min=0, min_open=True),
    metavar="DURATION",
    help="Stop if no further response comes for this long.",
)
@click.option("--raw", "-r", is_flag=True, help="Only the bytes of the response.")
@json_option
@server_options
def req(
    target: Target,
    subject: str,
    data: str,
    headers: tuple[str, ...],
    replies: int,
    reply_timeout: float | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Send DATA as a request on SUBJECT, and print the first response within --timeout.

    With --replies, up to so many responses are printed as they arrive; the command ends with the
    last of them, or after --timeout. With --json there is one line for each.

    If a stream captures SUBJECT, the response is that of the stream: its name and the sequence, or
    an error. The exit code is 1 if there is no response, also if nothing listens to SUBJECT. A
    response with an error is a response; `twinstream pub` makes a failure of it.
    """
    if raw and as_json:
        raise click.UsageError("give --raw or --json, not both")
    if reply_timeout is not None and replies == 1:
        raise click.UsageError("--reply-timeout needs --replies")
    words = TemplateWords("let the shell fill in such values")
    words.look("--header", *headers)
    words.look("DATA", data)
    values: dict[str, list[str]] = {}
    for name, value in parse_headers(headers):
        values.setdefault(name, []).append(value)
    with target.connect() as nc:
        begun = time.monotonic()
        if replies == 1:
            timeout = target.timeout
            found = nc.request(subject, argument(data), headers=values or None, timeout=timeout)
            _show(found, time.monotonic() - begun, raw=raw, as_json=as_json)
            return
        inbox = f"{target.inbox_prefix}.{uuid4().hex}"
        with nc.subscribe(inbox) as answers:
            nc.publish(subject, argument(data), reply=inbox, headers=values or None)
            received = _received(answers, subject, target.timeout, replies, reply_timeout)
            for found in received:
                _show(found, time.monotonic() - begun, raw=raw, as_json=as_json)


def _received(
    answers: Subscription, subject: str, timeout: float, most: int, pause: float | None
) -> Iterator[CoreMessage]:
    """Yield up to `most` responses (0 for all) until the timeout, or until a pause is too long.

    Raises `NoResponders` or `RequestTimeout` if there is no response.
    """
    from js_sync.client.core_message import is_unserved_reply

    deadline, count = Deadline.after(timeout), 0
    while not most or count < most:
        remaining = deadline.remaining()
        found = answers.next(timeout=min(remaining, pause) if pause and count else remaining)
        if found is None:
            break
        if is_unserved_reply(found):
            raise NoResponders(f"{subject}: no responders for this subject")
        count += 1
        yield found
    if not count:
        raise RequestTimeout(f"{subject}: no answer in time")


def _show(found: CoreMessage, took: float, *, raw: bool, as_json: bool) -> None:
    if as_json:
        print_json(core_as_json(found))
    elif raw:
        write_bytes(found.data)
    else:
        notes().print(f"response after {took * 1000:.1f} ms", style="dim")
        print_core(found)
