"""`twinstream get`: print stored messages without a consumer."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

import click

from twinstream.cli.message.message_view import print_stored, stored_as_json
from twinstream.cli.message.start_position import moment, since_of
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.screen import counted, notes, print_json, results, write_bytes
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_sync import Stream, StreamMessage, StreamRead


def moment_of(_: click.Context, __: click.Parameter, text: str | None) -> int | datetime | None:
    """Return the value of `--from` or `--to` as a sequence or a time; None if it is not given.

    This is a callback for click.
    """
    return None if text is None else moment(text)


@click.command(short_help="Show stored messages, without a consumer.")
@click.argument("stream")
@click.option("--seq", type=SEQUENCE, help="The message at this sequence.")
@click.option("--last", metavar="SUBJECT", help="The last message of this subject.")
@click.option("--each", is_flag=True, help="The last message of each subject.")
@click.option(
    "--from",
    "start",
    callback=moment_of,
    metavar="SEQ|AGE|TIME",
    help="The first message to print.",
)
@click.option(
    "--since", callback=since_of, metavar="AGE", help="The same as --from with an age, such as 1h."
)
@click.option(
    "--to",
    "end",
    callback=moment_of,
    metavar="SEQ|AGE|TIME",
    help="Print the messages before this.",
)
@click.option(
    "--subject",
    "subjects",
    multiple=True,
    metavar="FILTER",
    help="Only messages of these subjects.",
)
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many messages.")
@click.option("--raw", is_flag=True, help="Only the bytes of the payload, of one message.")
@json_option
@server_options
def get(
    target: Target,
    stream: str,
    seq: int | None,
    last: str | None,
    each: bool,
    start: int | datetime | None,
    since: datetime | None,
    end: int | datetime | None,
    subjects: tuple[str, ...],
    count: int | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Print stored messages of STREAM: all, a range, the last ones, or a single one.

    Nothing is consumed or changed, not even in a work queue. --from and --to accept a sequence, an
    age such as 2m, or a time with a time zone. With --json there is one line for each message. With
    --raw, exactly the payload of one message is written.

    \b
    twinstream get ORDERS --seq 17
    twinstream get ORDERS --seq 17 --raw > payload
    twinstream get ORDERS --last orders.new
    twinstream get ORDERS --each --subject 'orders.*.state'
    twinstream get ORDERS --from 2026-01-31T08:00:00Z --to 2026-01-31T09:00:00Z
    """  # noqa: D301  # click needs the backspace character
    if since is not None:
        if start is not None:
            raise click.UsageError("give --from or --since, not both")
        start = since
    ways = [seq is not None, last is not None, each, start is not None or end is not None]
    if sum(ways) > 1:
        raise click.UsageError("give one of --seq, --last, --each, or --from and --to")
    if seq is not None or last is not None:
        given = "--subject" if subjects else "--count" if (count or 1) > 1 else None
        if given is not None:
            raise click.UsageError(
                f"{given} is for many messages, not for --seq or --last; give --from SEQ for the"
                " first of them"
            )
    if raw and seq is None and last is None:
        raise click.UsageError(
            "--raw is for one message, given by --seq or --last; for several, --json has the"
            " payload of each in `data` or `data_base64`"
        )
    if raw and as_json:
        raise click.UsageError("give --raw or --json, not both")
    with target.connect() as nc, ExitStack() as stack:
        source = target.jetstream(nc).bind_stream(stream)
        if seq is not None:
            found: Iterable[StreamMessage] = [source.get_message(seq)]
        elif last is not None:
            found = [source.get_last_message(last)]
        elif each:
            found = source.snapshot(subjects or None, idle_timeout=target.timeout).values()
        else:
            # Reading a range uses resources on the server. The stack ends the read even if
            # `--count` ends the loop early.
            found = stack.enter_context(_range(source, start, end, subjects, target.timeout))
        if raw:
            write_bytes(next(iter(found)).data)
            return
        printed, end = _print(found, count, as_json)
    if not as_json:
        is_range = seq is None and last is None and not each
        rest = f"; for the next ones --from {end + 1}" if is_range and printed == count else ""
        notes().print(counted(printed, "message") + rest, style="dim")


def _range(
    source: Stream,
    start: int | datetime | None,
    end: int | datetime | None,
    subjects: tuple[str, ...],
    timeout: float,
) -> StreamRead:
    return source.read(
        start if isinstance(start, int) else None,
        end if isinstance(end, int) else None,
        start_time=start if isinstance(start, datetime) else None,
        end_time=end if isinstance(end, datetime) else None,
        subjects=subjects or None,
        idle_timeout=timeout,
    )


def _print(messages: Iterable[StreamMessage], count: int | None, as_json: bool) -> tuple[int, int]:
    """Print up to `count` messages. Return their number, and the sequence of the last one."""
    console, printed, end = results(), 0, 0
    for message in messages:
        if as_json:
            print_json(stored_as_json(message))
        else:
            print_stored(console, message)
        printed, end = printed + 1, message.seq
        if printed == count:
            break
    return printed, end
