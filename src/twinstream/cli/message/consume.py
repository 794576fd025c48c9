"""`twinstream consume`: print the messages of a stream through a consumer."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from twinstream.cli.failures import Failure, NotThere, arguments_judged
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.message_source import Durable, InOrder, MessageSource
from twinstream.cli.message.message_view import as_json as message_as_json
from twinstream.cli.message.message_view import print_message
from twinstream.cli.message.reconnects import LinkWatch, Patience
from twinstream.cli.message.start_position import Start, since_of, start_text
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import alerts, counted, notes, print_json, results
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.value_text import in_time
from twinstream.core.hooks import HOOKS, reached

if TYPE_CHECKING:
    from rich.console import Console

    from js_sync import Consumer, Message, OrderedMessages, Priority, Stream
    from twinstream.models import ConsumerConfig

# The maximum seconds of a wait for a message, so that Ctrl-C takes effect soon.
_TURN: Final = 0.5
# The minimum seconds of a wait for a message.
_SHORTEST: Final = 0.05


def start_of(_: click.Context, __: click.Parameter, text: str) -> Start:
    """Return the value of `--from` as a start position. This is a callback for click."""
    return start_text(text)


@click.command(short_help="Read the messages of a stream through a consumer.")
@click.argument("stream")
@click.argument("consumer", required=False)
@click.option("--create", is_flag=True, help="Create the durable CONSUMER if it does not exist.")
@click.option(
    "--subject", "subjects", multiple=True, metavar="FILTER", help="Subjects of a new consumer."
)
@click.option(
    "--from",
    "start",
    callback=start_of,
    default="all",
    metavar="all|new|last|SEQ|AGE|TIME",
    show_default=True,
    help="Where a new consumer starts.",
)
@click.option(
    "--since", callback=since_of, metavar="AGE", help="The same as --from with an age, such as 1h."
)
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many messages.")
@click.option(
    "--wait",
    type=Seconds(min=0),
    metavar="DURATION",
    help="Stop after this time without a message; by default wait forever.",
)
@click.option(
    "--ack/--no-ack",
    "acknowledge",
    default=True,
    show_default=True,
    help="Whether to acknowledge printed messages (those of CONSUMER only).",
)
@click.option("--group", help="The priority group of CONSUMER to receive messages for.")
@json_option
@server_options
def consume(
    target: Target,
    stream: str,
    consumer: str | None,
    create: bool,
    subjects: tuple[str, ...],
    start: Start,
    since: datetime | None,
    count: int | None,
    wait: float | None,
    acknowledge: bool,
    group: str | None,
    as_json: bool,
) -> None:
    """Print the messages of STREAM as CONSUMER receives them.

    CONSUMER is durable; each message is acknowledged after it was printed. Without CONSUMER, the
    stream is read in order, each message once, and no consumer remains on the server. Ctrl-C ends
    the command cleanly. After a lost connection, the command reconnects without a time limit,
    unless --wait ends first. A time for --from needs a time zone; an age, such as 2m, is
    counted back from now. With --json there is one line for
    each message.

    \b
    twinstream consume ORDERS --from last --wait 1
    twinstream consume ORDERS --from 2026-01-31T08:00:00Z
    twinstream consume ORDERS worker --create --count 10 --json
    """  # noqa: D301  # click needs the backspace character
    if consumer is None and (create or group):
        raise click.UsageError(
            f"--{'create' if create else 'group'} needs the name of the CONSUMER"
        )
    if since is not None:
        start = Start(policy="by_start_time", time=since)
    priority = _priority(group)
    with ExitStack() as stack:
        nc = stack.enter_context(target.connect(keep_trying=True))
        stop = stack.enter_context(asked_to_stop())
        stored = target.jetstream(nc).get_stream(stream)
        if consumer is None:
            messages = stack.enter_context(_in_order(stored, subjects, start))
            source: MessageSource = InOrder(messages, stream)
        else:
            worker = _get_or_create(stored, consumer, create, subjects, start)
            durable = Durable(worker, acknowledge, Patience(nc, stop), priority)
            stack.callback(durable.give_back)
            source = durable
        link, console, printed = LinkWatch(nc), results(), 0
        try:
            while count is None or printed < count:
                most = None if count is None else count - printed
                message = _next_message(source, link, wait, stop, most)
                if message is None:
                    break
                _print(message, console, as_json)
                if HOOKS:
                    reached("command: message printed", message)
                printed += 1
                source.done(message)
            if link.look():
                nc.flush(timeout=target.timeout)
                if source.last_error is not None and not stop.is_set():
                    raise source.last_error
            elif not stop.is_set():
                raise Failure("the connection to the server is lost, and no message arrived since")
        finally:
            # Print the number of printed messages also after a failure.
            if not as_json:
                notes().print(counted(printed, "message"), style="dim")


def _priority(group: str | None) -> Priority | None:
    from twinstream.core.consume.pull_request import Priority

    with arguments_judged():
        return Priority(group=group) if group is not None else None


def _in_order(stored: Stream, subjects: tuple[str, ...], start: Start) -> OrderedMessages:
    with arguments_judged():
        return stored.ordered(
            subjects=list(subjects) or None,
            deliver_policy=None if start.sequence or start.time else start.policy,
            start_seq=start.sequence,
            start_time=start.time,
        )


def _get_or_create(
    stored: Stream, name: str, create: bool, subjects: tuple[str, ...], start: Start
) -> Consumer:
    """Return the consumer `name`. If there is none, create it if `create` is set."""
    from twinstream.errors import ConsumerNotFound

    try:
        found = stored.get_consumer(name)
        _check_given(found, subjects, start)
        _note_pause(found)
        return found
    except ConsumerNotFound as error:
        if not create:
            raise NotThere(
                f"stream {stored.name} has no consumer {name}; create it with --create,"
                f" or see `twinstream stream info {stored.name}`"
            ) from error
        return stored.create_consumer(_config(name, subjects, start))


def _check_given(consumer: Consumer, subjects: tuple[str, ...], start: Start) -> None:
    """Raise a failure if a given `--from` or `--subject` differs from the existing consumer."""
    config = consumer.cached_info.config if consumer.cached_info is not None else None
    if config is None:
        return
    others: list[str] = []
    source = click.get_current_context().get_parameter_source("start")
    begins = (config.deliver_policy, config.opt_start_seq, config.opt_start_time)
    if source is not ParameterSource.DEFAULT and begins != (
        start.policy,
        start.sequence,
        start.time,
    ):
        others.append("--from")
    filters = config.filter_subjects or ([config.filter_subject] if config.filter_subject else [])
    if subjects and sorted(subjects) != sorted(filters):
        others.append("--subject")
    if others:
        raise Failure(
            f"{consumer.name} exists with another {' and '.join(others)}, which only a new"
            " consumer can have: omit it, or use another name with --create"
        )


def _note_pause(consumer: Consumer) -> None:
    """Print a note if the consumer is paused, because it delivers no messages then."""
    info = consumer.cached_info
    if info is not None and info.paused:
        remaining = info.pause_remaining
        until = (
            f" for {in_time(timedelta(seconds=round(remaining.total_seconds())))} more"
            if remaining
            else ""
        )
        where = f"{consumer.stream_name} {consumer.name}"
        text = f"{consumer.name} is paused{until}; `twinstream consumer resume {where}` ends that"
        alerts().print(text, style="yellow", soft_wrap=True)


def _config(name: str, subjects: tuple[str, ...], start: Start) -> ConsumerConfig:
    from twinstream.models import ConsumerConfig

    return ConsumerConfig(
        durable_name=name,
        ack_policy="explicit",
        deliver_policy=start.policy,
        opt_start_seq=start.sequence,
        opt_start_time=start.time,
        filter_subjects=list(subjects) or None,
    )


def _next_message(
    source: MessageSource, link: LinkWatch, wait: float | None, stop: Event, most: int | None
) -> Message | None:
    """Return the next message, or None after `wait` seconds or when `stop` is set.

    Meanwhile, print changes of the connection's state. After `stop`, messages that were delivered
    before are still returned.
    """
    deadline = None if wait is None else time.monotonic() + wait
    # A delivered message that is given back to the server has used up one of its deliveries, so the
    # caller gets it even after `stop`.
    while source.at_hand or not stop.is_set():
        remaining = _TURN if deadline is None else deadline - time.monotonic()
        message = source.take(max(min(remaining, _TURN), _SHORTEST), most)
        link.look()
        if message is not None:
            return message
        if deadline is not None and time.monotonic() >= deadline:
            return None
    return None


def _print(message: Message, console: Console, as_json: bool) -> None:
    if as_json:
        print_json(message_as_json(message))
    else:
        print_message(console, message)
