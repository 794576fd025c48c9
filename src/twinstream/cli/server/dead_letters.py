"""`twinstream dlq`: manage dead letters, which are messages that no worker could process."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.failures import Failure, NotThere, arguments_judged
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.message_view import payload, printable
from twinstream.cli.message.reconnects import LinkWatch, Patience
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.screen import (
    alerts,
    counted,
    notes,
    plain_table,
    print_json,
    print_table,
    print_text,
    progress,
    results,
    write_bytes,
)
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.wire.subjects import check_subject
from twinstream.errors.transient import is_transient

if TYPE_CHECKING:
    from js_sync import Connection
    from js_sync import JetStream as Jet
    from js_sync.workers import DeadLetter, DeadLetters

T = TypeVar("T", "DeadLetter", int)

# The maximum seconds of a wait for failures, so that Ctrl-C takes effect soon.
_TURN: Final = 0.5


_OPTIONS: Final = (
    click.argument("stream"),
    click.option("--consumer", metavar="NAME", help="Only failures of this consumer."),
    click.option("--letters", metavar="STREAM", help="Their stream; by default STREAM-dead."),
)


def letters_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the argument and the options that select the dead letters to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def opened(
    target: Target,
    stream: str,
    consumer: str | None,
    letters: str | None,
    failures: str | None,
    keep_trying: bool = False,
) -> Generator[tuple[Connection, DeadLetters]]:
    """Connect, and yield the connection and the `DeadLetters` of a stream.

    If the stream of the dead letters does not exist, an error within the block becomes a `Failure`
    that describes how to create it.
    """
    from js_sync.workers import DeadLetters
    from twinstream.errors import StreamNotFound

    with target.connect(keep_trying=keep_trying) as nc:
        jet: Jet = target.jetstream(nc)
        dead = DeadLetters(
            jet,
            stream,
            consumer_name=consumer,
            letters_stream_name=letters,
            failures_stream_name=failures,
            on_report=lambda report: alerts().print(str(getattr(report, "text", report))),
        )
        try:
            yield nc, dead
        except StreamNotFound as error:
            if dead.letters_stream_name not in error.subject.split("."):
                raise
            raise NotThere(
                f"there is no stream {dead.letters_stream_name} for the dead letters of"
                f" {stream}\n`twinstream dlq run {stream}` creates it, and captures failures from"
                " then on; --letters selects another stream"
            ) from error


@click.command(short_help="Turn failures into dead letters, until stopped.")
@letters_options
@click.option(
    "--failures", metavar="STREAM", help="Stream of the advisories; default: STREAM-failures."
)
@click.option("--once", is_flag=True, help="Process the failures captured so far, then end.")
@json_option
@server_options
def run(
    target: Target,
    stream: str,
    consumer: str | None,
    letters: str | None,
    failures: str | None,
    once: bool,
    as_json: bool,
) -> None:
    """Keep the messages that consumers of STREAM gave up: delivered too often, or terminated.

    Creates the two streams that it needs. From then on, failures are captured even while this
    command does not run. Several instances may run at once. Ctrl-C ends the command cleanly.
    Without --once, the command reconnects after a lost connection without a time limit.
    """
    opening = opened(target, stream, consumer, letters, failures, keep_trying=not once)
    with opening as (nc, dead), asked_to_stop() as stop:
        dead.create()
        link, patience = LinkWatch(nc), Patience(nc, stop)
        if not once:
            notes().print(f"dead letters go to stream {dead.letters_stream_name}", style="dim")
        while not stop.is_set():
            with nullcontext() if once else patience.tried():
                if not dead.collect(idle_timeout=_TURN) and once:
                    break
            link.look()
    if as_json:
        numbers = {"stored": dead.stored, "known": dead.known, "skipped": dead.skipped}
        print_json({"letters": dead.letters_stream_name, **numbers})
        return
    print_text(
        f"{counted(dead.stored, 'dead letter')} stored in {dead.letters_stream_name},"
        f" {dead.known:,} already known, {dead.skipped:,} advisories skipped"
    )


@click.command(name="ls", short_help="List dead letters.")
@letters_options
@json_option
@server_options
def list_letters(
    target: Target, stream: str, consumer: str | None, letters: str | None, as_json: bool
) -> None:
    """List the dead letters of STREAM, the oldest first."""
    table = plain_table(
        "letter", "failed at", "consumer", "sequence", "deliveries", "subject", "why",
        numbers=("letter", "sequence", "deliveries"), names=("letter", "consumer"),
    )  # fmt: skip
    with opened(target, stream, consumer, letters, None) as (_, dead):
        for letter in dead.letters(idle_timeout=target.timeout):
            if as_json:
                print_json(letter_as_json(letter))
                continue
            table.add_row(
                letter.seq,
                letter.failed_at,
                letter.consumer_name,
                letter.stream_seq,
                letter.num_delivered,
                letter.subject or "(gone)",
                letter.reason or letter.cause,
            )
    if not as_json:
        print_table(table, "no dead letters")


@click.command(short_help="Show one dead letter.")
@letters_options
@click.argument("letter", type=SEQUENCE)
@click.option("--raw", is_flag=True, help="Only the bytes of the message's payload.")
@json_option
@server_options
def show(
    target: Target,
    stream: str,
    consumer: str | None,
    letters: str | None,
    letter: int,
    raw: bool,
    as_json: bool,
) -> None:
    """Show the details of LETTER (its number in `dlq ls`) and its original message."""
    if raw and as_json:
        raise click.UsageError("give --raw or --json, not both")
    with opened(target, stream, consumer, letters, None) as (_, dead):
        found = dead.get(letter)
    if as_json:
        print_json(letter_as_json(found))
        return
    if raw:
        if found.missing:
            raise Failure(f"letter {letter} has no payload: {found.missing}")
        write_bytes(found.data)
        return
    console = results()
    table = Page()
    table.add_row("dead letter", found.seq)
    table.add_row("message", f"{found.stream_name} {found.stream_seq}")
    table.add_row("subject", found.subject or "not known")
    table.add_row("consumer", found.consumer_name)
    table.add_row("cause", found.cause.replace("_", " "))
    table.add_row("reason", found.reason)
    table.add_row("deliveries", found.num_delivered)
    table.add_row("failed at", found.failed_at)
    if found.stored_at is not None:
        table.add_row("stored at", found.stored_at)
    for name, value in found.headers.pairs:
        table.add_row("header", f"{name}: {value}")
    console.print(table, "")
    print_text(found.missing or printable(found.data))


@click.command(short_help="Publish the messages of dead letters again.")
@letters_options
@click.argument("numbers", nargs=-1, type=SEQUENCE)
@click.option("--all", "everything", is_flag=True, help="All letters with a message.")
@click.option("--subject", metavar="SUBJECT", help="Publish to this subject, not the original.")
@click.option(
    "--by-reset",
    "reset",
    metavar="CONSUMER",
    help="Reset CONSUMER to its first dead letter instead (server 2.14).",
)
@yes_option
@json_option
@server_options
def replay(
    target: Target,
    stream: str,
    consumer: str | None,
    letters: str | None,
    numbers: tuple[int, ...],
    everything: bool,
    subject: str | None,
    reset: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Publish the messages of the dead letters NUMBERS again, and remove the letters.

    The messages are published to their original subject as new messages, for all its consumers. A
    letter is refused, and the rest goes on, if neither STREAM nor a stream that it copies from
    stores messages under the subject in the letter: anyone may have written it. --subject publishes
    to a subject that you name.

    \b
    twinstream dlq replay ORDERS 3 4
    twinstream dlq replay ORDERS --all --yes
    """  # noqa: D301  # click needs the backspace character
    if bool(numbers) + everything + bool(reset) != 1:
        raise click.UsageError("name the letters by number, or give --all, or --by-reset")
    if subject is not None:
        with arguments_judged():
            check_subject(subject)
    with opened(target, stream, consumer, letters, None) as (_, dead):
        if reset:
            sure(f"Reset {reset}? It also redelivers messages acknowledged since.", yes=yes)
            first = dead.replay_by_reset(reset)
            if as_json:
                print_json({"stream_name": stream, "consumer_name": reset, "first_seq": first})
            else:
                print_text(f"{reset} restarts at sequence {first:,} of {stream}")
            return
        found, damaged = _chosen(dead, numbers, target.timeout)
        without_message = [letter for letter in found if letter.missing]
        if without_message and not everything:
            raise Failure(
                f"letter {without_message[0].seq} cannot be replayed: {without_message[0].missing}"
            )
        found = [letter for letter in found if not letter.missing]
        sure(f"Publish {counted(len(found), 'message')} again?", yes=yes or not found)
        publish_again = partial(dead.replay, subject=subject)
        refused = _process_each(
            found, publish_again, "published again", shown=len(found) > 1 and not as_json
        )
    refused += len(damaged)
    done = len(found) + len(damaged) - refused
    if as_json:
        numbers_of = {"replayed": done, "missing": len(without_message), "refused": refused}
        print_json({"stream_name": stream, **numbers_of})
    else:
        left = f"; {len(without_message):,} without a message stay" if without_message else ""
        print_text(f"{counted(done, 'message')} published again{left}")
    if refused:
        raise Failure(
            f"{counted(refused, 'dead letter')} refused, and kept\n`twinstream dlq show` shows one,"
            " `twinstream dlq discard` removes it"
        )


@click.command(short_help="Remove dead letters.")
@letters_options
@click.argument("numbers", nargs=-1, type=SEQUENCE)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@yes_option
@json_option
@server_options
def discard(
    target: Target,
    stream: str,
    consumer: str | None,
    letters: str | None,
    numbers: tuple[int, ...],
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove the dead letters NUMBERS; their messages are lost unless STREAM still has them."""
    if bool(numbers) == everything:
        raise click.UsageError("name the letters by number, or give --all")
    with opened(target, stream, consumer, letters, None) as (_, dead):
        letters_found, damaged = _chosen(dead, numbers, target.timeout)
        found = [letter.seq for letter in letters_found] + damaged
        sure(f"Remove {counted(len(found), 'dead letter')} for good?", yes=yes or not found)
        _process_each(found, dead.discard, "removed", shown=False)
    if as_json:
        print_json({"stream_name": stream, "discarded": len(found)})
    else:
        print_text(f"{counted(len(found), 'dead letter')} removed")


def _chosen(
    dead: DeadLetters, numbers: tuple[int, ...], timeout: float
) -> tuple[list[DeadLetter], list[int]]:
    """Return dead letters, and which of `numbers` are messages that are no dead letters."""
    from twinstream.errors import BadArgument

    if not numbers:
        return list(dead.letters(idle_timeout=timeout)), []
    found: list[DeadLetter] = []
    damaged: list[int] = []
    for number in dict.fromkeys(numbers):
        try:
            found.append(dead.get(number))
        except BadArgument as error:
            damaged.append(number)
            alerts().print(str(error))
    return found, damaged


def _process_each(items: list[T], act: Callable[[T], object], done: str, *, shown: bool) -> int:
    """Call `act` for each letter, or for the number of each; return how many were refused.

    `act` itself reports a letter that it refuses with `BadArgument`. After Ctrl-C, or an error that
    may concern all letters, raise a `Failure` with the number of processed letters.
    """
    from twinstream.errors import (
        BadArgument,
        JetStreamError,
        StreamNotFound,
        TwinstreamError,
    )

    refused = 0
    stopping = asked_to_stop("finishing the current dead letter")
    with stopping as stop, progress(notes(), shown=shown) as display:
        for number, item in enumerate(display.track(items, description="letters")):
            how_far = f"{number - refused:,} of {counted(len(items), 'dead letter')} {done}"
            if stop.is_set():
                raise Failure(f"interrupted\n{how_far}")
            if HOOKS:
                reached("command: before step", item)
            try:
                act(item)
            except BadArgument:
                refused += 1
            except TwinstreamError as error:
                seq = item if isinstance(item, int) else item.seq
                of_all = isinstance(error, StreamNotFound) or is_transient(error)
                if of_all or not isinstance(error, JetStreamError):
                    raise Failure(f"letter {seq}: {error}\n{how_far}") from error
                alerts().print(f"letter {seq}: {error}")
                refused += 1
    return refused


def letter_as_json(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter as a JSON object.

    `data` is the payload as text if it is UTF-8; any other payload is in `data_base64`. If
    the message or a part of it is lost, `missing` is the reason, and the payload is omitted.
    """
    shown: dict[str, Any] = {
        "letter": letter.seq,
        "stream_name": letter.stream_name,
        "consumer_name": letter.consumer_name,
        "seq": letter.stream_seq,
        "subject": letter.subject,
        "cause": letter.cause,
        "reason": letter.reason,
        "num_delivered": letter.num_delivered,
        "failed_at": letter.failed_at.rfc3339(),
        "headers": [list(pair) for pair in letter.headers.pairs],
    }
    if letter.stored_at is not None:
        shown["stored_at"] = letter.stored_at.rfc3339()
    if letter.missing:
        return shown | {"missing": letter.missing}
    return shown | payload(letter.data)
