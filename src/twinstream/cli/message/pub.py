"""`twinstream pub`: publish messages and wait until the stream has stored them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from twinstream.cli.failures import Failure, arguments_judged, failure_as_json, needs_its_reader
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.payloads import Draft, Separator, at_rate, parse_headers, payloads
from twinstream.cli.message.pub_tally import Tally
from twinstream.cli.message.template_words import TemplateWords
from twinstream.cli.option_types import LAST_SEQUENCE, Finite, Life
from twinstream.cli.screen import notes, print_json, progress, results
from twinstream.cli.target import Target, json_option, server_options
from twinstream.core.publish.ttl import ttl_header
from twinstream.records.publish_request import Ttl

if TYPE_CHECKING:
    from js_sync import PublishFailure, PublishRequest
    from twinstream.models import PubAck

WINDOW: Final = 256
_SEQ: Final = click.IntRange(0, LAST_SEQUENCE)


@click.command(short_help="Publish messages and wait until a stream has them.")
@click.argument("subject")
@click.argument("data", required=False)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the data from a file; several files are several messages.",
)
@click.option("--lines", is_flag=True, help="Each line of the data is one message.")
@click.option("--nul", "-0", is_flag=True, help="Messages are separated by NUL (find -print0).")
@click.option("--template", is_flag=True, help="Replace {n} also in files and standard input.")
@click.option(
    "--count",
    "-n",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often to send the data.",
)
@click.option(
    "--rate",
    type=Finite(min=0, min_open=True),
    metavar="N",
    help="Send at most this many messages per second.",
)
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'", help="Of each message."
)
@click.option("--msg-id", metavar="ID", help="The stream stores one message for each id.")
@click.option(
    "--ttl", type=Life(), metavar="DURATION", help='Life of the message; "never" outlives max_age.'
)
@click.option(
    "--rollup",
    type=click.Choice(["sub", "all"]),
    help="Remove the earlier messages of the subject, or of the stream.",
)
@click.option(
    "--stream", "expected_stream", metavar="NAME", help="Fail if another stream stores it."
)
@click.option("--last-seq", type=_SEQ, metavar="SEQ", help="Fail unless this is the last sequence.")
@click.option(
    "--last-subject-seq",
    type=_SEQ,
    metavar="SEQ",
    help="Fail unless this is the subject's last sequence; 0 if it has no message.",
)
@click.option(
    "--last-subject", metavar="SUBJECT", help="The subject of --last-subject-seq, if another one."
)
@click.option("--last-msg-id", metavar="ID", help="Fail unless the stream's last id is this.")
@json_option
@server_options
def pub(
    target: Target,
    subject: str,
    data: str | None,
    files: tuple[Path, ...],
    lines: bool,
    nul: bool,
    template: bool,
    count: int,
    rate: float | None,
    headers: tuple[str, ...],
    msg_id: str | None,
    ttl: Ttl | None,
    rollup: str | None,
    expected_stream: str | None,
    last_seq: int | None,
    last_subject_seq: int | None,
    last_subject: str | None,
    last_msg_id: str | None,
    as_json: bool,
) -> None:
    """Publish DATA (or files, or standard input) on SUBJECT into a stream.

    Waits until the server has stored each message, and prints the stream and the sequence. In
    SUBJECT, DATA, header values and the message id, {n} is replaced by the number of the message;
    write {{n}} for a literal {n}. The bytes of files and of standard input are sent unchanged,
    unless --template is given. With --template, words of the `nats` command such as {{Count}} are
    refused; otherwise they are sent as they stand, with a warning.
    With --json there is one line for each message. After Ctrl-C the command sends no more messages,
    and waits for the acknowledgements of messages in flight.

    \b
    twinstream pub orders.new '{"id": {n}}' --count 1000 --msg-id 'order-{n}'
    journalctl -o cat | twinstream pub logs.host1 --lines
    twinstream pub orders.7 '{"state": "paid"}' --last-subject-seq 12
    """  # noqa: D301  # click needs the backspace character
    if data not in (None, "-") and files:
        raise click.UsageError("give the data once: as DATA or with --file")
    separator = _separator(lines=lines, nul=nul)
    if last_subject is not None and last_subject_seq is None:
        raise click.UsageError("--last-subject needs --last-subject-seq")
    if ttl is not None:
        with arguments_judged():
            ttl_header(ttl, "--ttl")
    _check_ids(msg_id, last_msg_id)
    words = TemplateWords("{n} is the number of the message", refused=template)
    with arguments_judged():
        words.look("SUBJECT", subject)
        words.look("--header", *headers)
        words.look("--msg-id", msg_id)
        words.look("DATA", data)
    draft = Draft(subject=subject, headers=parse_headers(headers), message_id=msg_id)
    conditions = {
        "expected_stream": expected_stream,
        "expected_last_seq": last_seq,
        "expected_last_subject_seq": last_subject_seq,
        "expected_last_subject_seq_subject": last_subject,
        "expected_last_msg_id": last_msg_id,
        "rollup": rollup,
        "ttl": ttl,
    }
    streaming = separator is not None
    tally = Tally()
    shown = (count > 1 or len(files) > 1 or streaming) and not as_json
    with (
        target.connect() as nc,
        asked_to_stop("waiting for the acknowledgements of messages in flight") as stop,
        progress(notes(), shown=shown) as display,
    ):
        total = None if streaming else count * max(1, len(files))
        task = display.add_task("publish", total=total)
        jet = target.jetstream(nc)
        found = payloads(data, files, separator, count, stop, template=template)
        parts = at_rate(words.looked(found), rate, stop)
        requests = _requests(draft, parts, conditions, stop)
        # The tally counts failures, and `_raise_unless_all_stored` reports them.
        publishing = jet.publish_many(requests, window=WINDOW, raise_failures=False)
        with needs_its_reader("all messages were published"), publishing as outcomes:
            for outcome in outcomes:
                tally.enter(outcome)
                display.advance(task)
                if as_json:
                    _print_outcome(outcome)
    if not tally.sent:
        words.raise_refusal()  # instead of the note that there was no input
    if not as_json:
        tally.show(results())
    _raise_unless_all_stored(tally, interrupted=stop.is_set())
    words.raise_refusal()


def _check_ids(msg_id: str | None, last_msg_id: str | None) -> None:
    from twinstream.core.publish.request import check_condition

    for name, value in (("--msg-id", msg_id), ("--last-msg-id", last_msg_id)):
        if value is not None:
            with arguments_judged():
                check_condition(value, name)


def _separator(*, lines: bool, nul: bool) -> Separator:
    if lines and nul:
        raise click.UsageError("give --lines or --nul, not both")
    if lines:
        return b"\n"
    return b"\0" if nul else None


def _requests(
    draft: Draft, parts: Iterator[bytes], conditions: dict[str, Any], stop: threading.Event
) -> Iterator[PublishRequest]:
    """Yield a request for each payload, with its number in the texts, until `stop` is set."""
    from js_sync import PublishRequest

    for number, part in enumerate(parts, start=1):
        if stop.is_set():
            return
        yield PublishRequest(
            subject=draft.subject_of(number),
            data=part,
            headers=draft.headers_of(number) or None,
            msg_id=draft.message_id_of(number),
            **conditions,
        )


def _raise_unless_all_stored(tally: Tally, *, interrupted: bool) -> None:
    """Raise a `Failure` if a message was not stored, or if the user interrupted."""
    if tally.failed and tally.sent == 1:
        raise Failure(str(tally.error)) from tally.error
    if tally.failed:
        raise Failure(
            f"{tally.failed:,} of {tally.sent:,} not stored; the first: {tally.error}"
        ) from tally.error
    if interrupted and not tally.sent:
        raise Failure("interrupted, nothing was published")
    if interrupted:
        raise Failure(f"interrupted after {tally.sent:,} messages, all of which are stored")


def _print_outcome(outcome: PubAck | PublishFailure) -> None:
    from js_sync import PublishFailure
    from twinstream.models import encode

    if isinstance(outcome, PublishFailure):
        print_json(failure_as_json(str(outcome.error), outcome.error))
    else:
        print_json(encode(outcome))
