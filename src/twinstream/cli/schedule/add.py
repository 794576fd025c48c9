"""`twinstream schedule add`: store a schedule, so that a stream publishes later or repeatedly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinstream.cli.failures import arguments_judged
from twinstream.cli.message.payloads import argument, parse_headers
from twinstream.cli.option_types import Span
from twinstream.cli.schedule.view import as_json_object, in_words
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.target import Target, json_option, server_options
from twinstream.core.publish.ttl import NEVER
from twinstream.models import Duration
from twinstream.models.units import parse_duration
from twinstream.records.publish_request import Ttl

if TYPE_CHECKING:
    from twinstream.core.schedules.schedules import Schedule


@click.command(short_help="Store a schedule in a stream.")
@click.argument("stream")
@click.argument("subject")
@click.argument("destination")
@click.argument("data", required=False)
@click.option("--at", metavar="TIME", help="Once, at a time such as 2026-01-31T08:00:00Z.")
@click.option(
    "--in",
    "delay",
    type=Span(),
    metavar="DURATION",
    help="Once, after a time such as 90s or 1h30m.",
)
@click.option("--every", type=Span(), metavar="DURATION", help="Repeatedly, such as 5m.")
@click.option("--cron", metavar="PATTERN", help="Six fields, seconds first, or one like @daily.")
@click.option("--time-zone", metavar="NAME", help="Time zone of --cron; UTC by default.")
@click.option(
    "--file",
    "-f",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the data from a file.",
)
@click.option("--source", metavar="SUBJECT", help="Publish the last message of this subject.")
@click.option("--ttl", metavar="DURATION", help="TTL of the published messages.")
@click.option("--rollup", is_flag=True, help="Replace the previous messages of DESTINATION.")
@click.option("--lifetime", metavar="DURATION", help="TTL of the schedule itself.")
@click.option(
    "--header",
    "-H",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="A header of the published messages.",
)
@json_option
@server_options
def add(
    target: Target,
    stream: str,
    subject: str,
    destination: str,
    data: str | None,
    at: str | None,
    delay: timedelta | None,
    every: timedelta | None,
    cron: str | None,
    time_zone: str | None,
    file: Path | None,
    source: str | None,
    ttl: str | None,
    rollup: bool,
    lifetime: str | None,
    headers: tuple[str, ...],
    as_json: bool,
) -> None:
    """Store a schedule in STREAM under SUBJECT, which publishes DATA to DESTINATION.

    SUBJECT and DESTINATION are two subjects of the stream. An existing schedule on SUBJECT is
    replaced. Give one of --at, --in, --every and --cron.

    \b
    twinstream schedule add ORDERS orders.timers.7 orders.remind --in 1h '{"order": 7}'
    twinstream schedule add ORDERS orders.timers.day orders.daily --cron '0 30 9 * * mon-fri' \\
        --time-zone Europe/Berlin
    """  # noqa: D301  # click needs the backspace character
    if data is not None and file is not None:
        raise click.UsageError("give the data once: as DATA or with --file")
    from js_sync.schedules import Schedules

    payload = file.read_bytes() if file is not None else argument(data or "")
    with arguments_judged():
        schedule = chosen(at, delay, every, cron, time_zone)
    pairs: dict[str, list[str]] = {}
    for name, value in parse_headers(headers):
        pairs.setdefault(name, []).append(value)
    with target.connect() as nc:
        jet = target.jetstream(nc)
        schedules = Schedules(jet, stream)
        ack = schedules.add(
            subject,
            schedule,
            destination,
            payload,
            headers=pairs or None,
            source=source,
            ttl=_life(ttl, "--ttl"),
            rollup=rollup,
            lifetime=_life(lifetime, "--lifetime"),
        )
        if as_json:
            print_json({"seq": ack.seq, **as_json_object(schedules.get(subject))})
            return
    (first,) = schedule.next_times(datetime.now(UTC), 1)
    print_text(f"stored in {ack.stream} at sequence {ack.seq}: {schedule}, {in_words(first)}")


def _life(text: str | None, option: str) -> Ttl | None:
    if text == NEVER:
        return NEVER
    if not text:
        return None
    ns = parse_duration(text)
    if ns is None or ns < 0:
        raise click.BadParameter(
            f"{text!r} is not a duration, such as 90s, 1h30m or 7d", param_hint=option
        )
    return Duration.from_ns(ns)


def chosen(
    at: str | None,
    delay: timedelta | None,
    every: timedelta | None,
    cron: str | None,
    time_zone: str | None,
) -> Schedule:
    """Return the schedule that the options describe. Raises a usage error for wrong options."""
    from twinstream.core.schedules.schedules import Schedule

    if sum(each is not None for each in (at, delay, every, cron)) != 1:
        raise click.UsageError("give one of --at, --in, --every and --cron")
    if time_zone is not None and cron is None:
        raise click.UsageError("--time-zone needs --cron")
    if at is not None:
        return Schedule.at(moment(at, "--at"))
    if delay is not None:
        return Schedule.at(datetime.now(UTC) + delay)
    if every is not None:
        return Schedule.every(every)
    return Schedule.cron(cron or "", time_zone=time_zone)


def moment(text: str, option: str) -> datetime:
    """Parse an ISO 8601 time with a time zone. The usage error for other text names `option`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{error}; write 2026-01-31T08:00:00Z", param_hint=option
        ) from None
    if found.tzinfo is None:
        raise click.BadParameter(
            f"{text} has no time zone: append Z for UTC, or an offset such as +01:00",
            param_hint=option,
        )
    return found
