"""`twinstream bench pub` and `consume`: measure a server with one connection."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from threading import Event
from typing import Final

import click

from twinstream.cli.bench.measures import Measured
from twinstream.cli.failures import Failure
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.option_types import Bytes, Seconds
from twinstream.cli.screen import notes, progress
from twinstream.cli.target import Target, json_option, server_options

# The number of messages after which the progress bar moves.
_STEP: Final = 100

_messages_option = click.option(
    "--msgs",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="How many messages.",
)


@click.command(short_help="Measure publishing.")
@click.argument("subject")
@_messages_option
@click.option(
    "--size",
    type=Bytes(min=0),
    default="128B",
    show_default=True,
    metavar="SIZE",
    help="Of each payload.",
)
@click.option(
    "--window",
    type=click.IntRange(1, 16_384),
    default=256,
    show_default=True,
    metavar="N",
    help="Messages in flight; 1 waits for each acknowledgement.",
)
@json_option
@server_options
def pub(target: Target, subject: str, msgs: int, size: int, window: int, as_json: bool) -> None:
    """Publish messages on SUBJECT into the stream that captures it, and measure the rate.

    The messages stay in the stream. {n} in SUBJECT is replaced by the number of the message. The
    percentiles are of the time from handing over a message to its acknowledgement.
    """
    payload = b"x" * size
    sent: deque[float] = deque()
    times: list[float] = []

    def requests(stop: Event) -> Iterator[tuple[str, bytes]]:
        for number in range(1, msgs + 1):
            if stop.is_set():
                return
            sent.append(time.perf_counter())
            yield subject.replace("{n}", str(number)), payload

    with (
        target.connect() as nc,
        asked_to_stop("waiting for the acknowledgements of messages in flight") as stop,
        progress(notes(), shown=not as_json) as display,
    ):
        jet = target.jetstream(nc)
        task = display.add_task("publish", total=msgs)
        begun = time.perf_counter()
        with jet.publish_many(requests(stop), window=window) as outcomes:
            for _ in outcomes:
                times.append(time.perf_counter() - sent.popleft())
                if len(times) % _STEP == 0:
                    display.advance(task, _STEP)
        seconds = time.perf_counter() - begun
        display.update(task, completed=len(times))
    _show("publish to acknowledgement", times, size * len(times), seconds, as_json)


@click.command(short_help="Measure consuming.")
@click.argument("stream")
@click.argument("consumer", required=False)
@_messages_option
@click.option(
    "--ack/--no-ack", "ack", default=True, show_default=True, help="Acknowledge them, of CONSUMER."
)
@click.option(
    "--wait",
    type=Seconds(min=0, min_open=True),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="End if no message arrives for this time.",
)
@json_option
@server_options
def consume(
    target: Target,
    stream: str,
    consumer: str | None,
    msgs: int,
    ack: bool,
    wait: float,
    as_json: bool,
) -> None:
    """Read messages of STREAM from its beginning, or those of the durable CONSUMER.

    The percentiles are of the time that the program waits for each next message.
    """
    times: list[float] = []
    size = 0
    with (
        target.connect() as nc,
        asked_to_stop() as stop,
        progress(notes(), shown=not as_json) as display,
    ):
        handle = target.jetstream(nc).get_stream(stream)
        source = handle.get_consumer(consumer).messages() if consumer else handle.ordered()
        task = display.add_task("consume", total=msgs)
        with source as messages:
            begun = last = ended = time.perf_counter()
            while len(times) < msgs and not stop.is_set():
                message = messages.next(timeout=wait)
                if message is None:
                    break
                ended = time.perf_counter()
                times.append(ended - last)
                last = ended
                size += len(message.data)
                if consumer and ack:
                    message.ack()
                if len(times) % _STEP == 0:
                    display.advance(task, _STEP)
        display.update(task, completed=len(times))
        nc.flush(timeout=target.timeout)
    _show("wait for a message", times, size, ended - begun, as_json)


def _show(what: str, times: list[float], size: int, seconds: float, as_json: bool) -> None:
    if not times:
        raise Failure("there was no message to measure")
    Measured(what, len(times), size, seconds, times).show(as_json=as_json)
