"""`twinstream consumer next`: fetch messages of a consumer, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinstream.cli.failures import Failure
from twinstream.cli.message.message_view import as_json as message_as_json
from twinstream.cli.message.message_view import print_message
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import notes, print_json, results, write_bytes
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_sync import Message


@click.command("next", short_help="Fetch the next messages of a consumer.")
@click.argument("stream")
@click.argument("consumer")
@click.option("--count", "-n", type=click.IntRange(min=1), default=1, help="How many messages.")
@click.option(
    "--wait",
    type=Seconds(min=0, min_open=True),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for each message.",
)
@click.option("--ack/--no-ack", "ack", default=True, show_default=True, help="Acknowledge them.")
@click.option("--nak", is_flag=True, help="Ask the server to deliver them again.")
@click.option("--term", is_flag=True, help="Tell the server never to deliver them again.")
@click.option("--raw", "-r", is_flag=True, help="Only the bytes of the payloads.")
@json_option
@server_options
def next_messages(
    target: Target,
    stream: str,
    consumer: str,
    count: int,
    wait: float,
    ack: bool,
    nak: bool,
    term: bool,
    raw: bool,
    as_json: bool,
) -> None:
    """Fetch the next message of CONSUMER of STREAM, print and acknowledge it.

    The exit code is 1 if no message arrives in time. With --no-ack, the server delivers the message
    again when its ack wait has passed. The acknowledgement is confirmed by the server. With --json
    there is one line for each message.
    """
    if nak and term:
        raise click.UsageError("give --nak or --term, not both")
    if raw and as_json:
        raise click.UsageError("give --raw or --json, not both")
    with target.connect() as nc:
        worker = target.jetstream(nc).get_consumer(stream, consumer)
        info = worker.cached_info
        none = info is not None and info.config is not None and info.config.ack_policy == "none"
        for number in range(count):
            message = worker.next(timeout=wait)
            if message is None:
                raise Failure(
                    f"no message within {wait:g} s" + (f", after {number}" * bool(number))
                )
            _print(message, raw, as_json)
            if none:
                continue
            _settle(message, ack=ack, nak=nak, term=term)
        nc.flush(timeout=target.timeout)


def _print(message: Message, raw: bool, as_json: bool) -> None:
    if as_json:
        print_json(message_as_json(message))
    elif raw:
        write_bytes(message.data)
    else:
        print_message(results(), message)


def _settle(message: Message, *, ack: bool, nak: bool, term: bool) -> None:
    if nak:
        message.nak()
    elif term:
        message.term()
    elif ack:
        message.double_ack()
        notes().print("acknowledged", style="dim")
