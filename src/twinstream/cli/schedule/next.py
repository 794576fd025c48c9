"""`twinstream schedule next`: show the next times of a pattern, without a server."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from twinstream.cli.failures import arguments_judged
from twinstream.cli.schedule.add import moment
from twinstream.cli.screen import plain_table, print_json, results, to_terminal
from twinstream.cli.target import json_option
from twinstream.cli.value_text import rfc3339


@click.command("next", short_help="Show when a schedule fires, without a server.")
@click.argument("pattern")
@click.option(
    "--count",
    "-n",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How many times to show.",
)
@click.option("--time-zone", metavar="NAME", help="Time zone of a cron pattern.")
@click.option("--after", metavar="TIME", help="Start at this time; by default now.")
@json_option
def next_times(
    pattern: str, count: int, time_zone: str | None, after: str | None, as_json: bool
) -> None:
    """Show the next times of a schedule.

    PATTERN is a cron pattern with six fields, a word such as @hourly, @every with an interval, or
    @at with a time. No server is needed. With --json, each time is printed on its own line.

    \b
    twinstream schedule next '0 30 9 * * mon-fri' --time-zone Europe/Berlin
    """  # noqa: D301  # click needs the backspace character
    from twinstream.core.schedules.schedules import Schedule

    begin = moment(after, "--after") if after else datetime.now(UTC)
    with arguments_judged():
        found = Schedule.parse(pattern, time_zone).next_times(begin, count)
    if as_json:
        for each in found:
            print_json({"time": each.rfc3339()})
        return
    zone = ZoneInfo(time_zone) if time_zone else UTC
    table = plain_table("UTC", *([time_zone] if time_zone else []), "")
    for each in found:
        local = each.astimezone(zone)
        people = to_terminal()
        shown = [each.isoformat(" ").removesuffix("+00:00") if people else rfc3339(each)]
        if time_zone:
            shown.append(local.isoformat(" " if people else "T"))
        table.add_row(*shown, local.strftime("%a"))
    results().print(table)
