"""`twinstream replay`: send a range of a stream into another server."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from twinstream.cli.failures import Failure, arguments_judged
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.message.start_position import Moment
from twinstream.cli.option_types import Finite, Type
from twinstream.cli.replay.destination import is_own_server, other_server, taker_of
from twinstream.cli.replay.masking import Masks
from twinstream.cli.replay.transfer import Transfer
from twinstream.cli.screen import alerts, counted, notes, print_json, print_text, progress
from twinstream.cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_sync import StreamRead

_FILE: Final = click.Path(exists=True, dir_okay=False)


class Speed(Type):
    """The type of an option for a speed factor, or `max`. The value of `max` is 0."""

    name = "factor"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the factor, or raise a usage error."""
        return 0.0 if value == "max" else Finite(min=0).convert(value, param, ctx)


@click.command(short_help="Send a range of a stream into another server.")
@click.argument("stream")
@click.option("--to", "url", required=True, metavar="URL", help="Address of the other server.")
@click.option("--from", "start", type=Moment(), metavar="MOMENT", help="The first message.")
@click.option("--until", "end", type=Moment(), metavar="MOMENT", help="Stop before this.")
@click.option(
    "--subject", "subjects", multiple=True, metavar="FILTER", help="Only messages of these."
)
@click.option(
    "--speed",
    type=Speed(),
    default="1",
    show_default=True,
    metavar="FACTOR",
    help="How many times as fast; 0 or max without pauses.",
)
@click.option(
    "--mask", "members", multiple=True, metavar="MEMBER", help="A JSON member to replace."
)
@click.option("--to-creds", type=_FILE, metavar="FILE", help="Credentials for the other server.")
@click.option("--to-nkey", type=_FILE, metavar="FILE", help="Nkey seed for the other server.")
@click.option("--yes", "-y", is_flag=True, help="Also into the server of STREAM itself.")
@json_option
@server_options
def replay(
    target: Target,
    stream: str,
    url: str,
    start: int | datetime | None,
    end: int | datetime | None,
    subjects: tuple[str, ...],
    speed: float,
    members: tuple[str, ...],
    to_creds: str | None,
    to_nkey: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send the messages of STREAM in a range to the server at URL, with their original distances.

    Subjects, headers, message ids and order stay the same. A stream there must take the subjects.
    A MOMENT is a sequence, an age such as 1h, a time of day such as 14:05 (the last one), or a time
    in RFC 3339. By default, the range is all that is stored at the start. Afterwards the other
    stream is read, and compared with what was sent.

    --mask NAME replaces the values of all JSON members of this name, and --mask customer.email
    those of a path from the top. Strings become "***", numbers 0, and truth values false. Upper and
    lower case are the same. A message that is not JSON then ends the replay before it is sent, and
    a MEMBER that no message has fails the command.

    The user and password of the other server are those of its URL. After Ctrl-C no more messages
    are sent, and the command says how far it came.
    """
    with arguments_judged():
        masks = Masks(members)
    other = other_server(target, url, to_creds, to_nkey)
    with (
        asked_to_stop("waiting for the acknowledgements of messages in flight") as stop,
        target.connect() as nc,
        other.connect() as far,
        progress(notes(), shown=not as_json) as display,
    ):
        source = target.jetstream(nc).get_stream(stream)
        jet, info = other.jetstream(far), source.info()
        if not yes and is_own_server(nc, info, far, jet, target.inbox_prefix):
            raise Failure(
                f"{_shown(url)} is the server of {stream} itself, or connected to it: the messages"
                " would be stored in the same account again; give another server, or --yes"
            )
        filters = subjects or tuple(info.config.subjects or ()) or (">",)
        name = taker_of(jet, source, filters, _shown(url))
        transfer, begun = Transfer(masks, speed, stop), time.monotonic()
        task = display.add_task("replay", total=None)
        reading = source.read(subjects=subjects or None, **_range(start, end))
        with reading:
            is_whole = transfer.send(reading, jet, name, lambda: display.advance(task))
        if not is_whole:
            raise Failure(f"interrupted: {transfer.reached(name)}")
        differences = transfer.differences(jet.bind_stream(name))
    _report(stream, name, transfer, masks, reading, time.monotonic() - begun, as_json)
    unmasked = [member for member, count in masks.found.items() if not count]
    failures: list[str] = []
    if unmasked and transfer.stored:
        failures.append(
            f"no message has a member {', '.join(map(repr, unmasked))}, so the messages in {name}"
            " are not masked for it: delete them there, and correct --mask"
        )
    if differences:
        failures.append(f"stream {name} is not as it was sent: {'; '.join(differences)}")
    if failures:
        raise Failure("; ".join(failures))


def _shown(url: str) -> str:
    """Return an address, or several with commas, without users and passwords."""
    shown: list[str] = []
    for each in url.split(","):
        scheme, separator, rest = each.rpartition("://")
        shown.append(scheme + separator + rest.rpartition("@")[2])
    return ",".join(shown)


def _range(start: int | datetime | None, end: int | datetime | None) -> dict[str, Any]:
    """Return the arguments of a read."""
    return {
        ("start_time" if isinstance(start, datetime) else "start"): start,
        ("end_time" if isinstance(end, datetime) else "end"): end,
    }


def _report(
    stream: str,
    name: str,
    transfer: Transfer,
    masks: Masks,
    reading: StreamRead,
    seconds: float,
    as_json: bool,
) -> None:
    """Print what was replayed, and warn of what may be unexpected."""
    first, last = transfer.bounds
    if as_json:
        print_json(
            {
                "stream": stream,
                "target_stream": name,
                "messages": transfer.stored,
                "duplicates": transfer.duplicates,
                "target_first_seq": first,
                "target_last_seq": last,
                "masked": dict(masks.found),
                "seconds": round(seconds, 3),
            }
        )
    elif not transfer.stored:
        print_text(f"{stream} has no new message in this range")
    else:
        print_text(
            f"replayed {counted(transfer.stored, 'message')} of {stream} into {name}, as sequences"
            f" {first} to {last}"
        )
        for member, count in masks.found.items():
            print_text(f"masked {counted(count, 'member')} {member}")
    if transfer.duplicates:
        alerts().print(
            f"{counted(transfer.duplicates, 'message')} not stored again: {name} has the message"
            " ids already"
        )
    overtaken = None if reading.report is None else reading.report.overtaken_at
    if overtaken is not None:
        alerts().print(
            f"{stream} begins at sequence {overtaken} now: messages of the range were removed"
            " before they were read"
        )
