"""`twinstream health`: show problems of streams and consumers."""

from __future__ import annotations

import itertools
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from twinstream.cli.failures import Failure, reported
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.option_types import Seconds
from twinstream.cli.screen import counted, plain_table, print_json, results, to_terminal
from twinstream.cli.target import Target, json_option, server_options
from twinstream.core.hooks import HOOKS, reached

if TYPE_CHECKING:
    from js_sync.health import Finding, Health

_COLOURS: Final = {"error": "bold red", "warning": "yellow"}


@click.command(short_help="Check the health of streams and consumers.")
@click.argument("stream", required=False)
@click.option(
    "--interval",
    type=Seconds(min=0.05),
    default="2s",
    show_default=True,
    metavar="DURATION",
    help="Time between the two samples of a check, to detect progress.",
)
@click.option("--watch", is_flag=True, help="Check repeatedly, until stopped.")
@json_option
@server_options
def health(target: Target, stream: str | None, interval: float, watch: bool, as_json: bool) -> None:
    """Report problems of STREAM and its consumers, or of all streams.

    The exit code is 1 if there is a finding of severity error (with --watch: in the last check).
    With --json each check is one document on one line. With --watch, only a failure of the first
    check ends the command.
    """
    from js_sync.health import check_health

    console = results()
    is_well = True
    with target.connect(keep_trying=watch) as nc, asked_to_stop() as stop:
        jet = target.jetstream(nc)
        live = Live(console=console, auto_refresh=False) if watch and not as_json else None
        with live or nullcontext():
            for number in itertools.count():
                try:
                    with reported():
                        found = check_health(jet, stream_name=stream, interval=interval)
                except Failure as failure:
                    if number == 0 or nc.is_closed:
                        raise
                    is_well = False
                    _show_failure(failure, live)
                    if HOOKS:
                        reached("command: health failed", failure)
                    stop.wait(interval)  # pause, because some failures are immediate
                else:
                    is_well = found.is_well
                    _show(found, live or console, as_json=as_json)
                    if HOOKS:
                        reached("command: health shown", found)
                if not watch or stop.is_set():
                    break
    if not is_well:
        raise SystemExit(1)


def _show(found: Health, where: Live | Console, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(found))
    elif isinstance(where, Live):
        where.update(_renderable(found), refresh=True)
    else:
        where.print(_renderable(found))


def _show_failure(failure: Failure, live: Live | None) -> None:
    if live is None:
        failure.show()
    else:
        head = Text(time.strftime("%H:%M:%S"), style="dim")
        live.update(Group(head, Text(f"error: {failure.message}", style="red")), refresh=True)


def _renderable(found: Health) -> RenderableType:
    """Return the findings as coloured paragraphs for a terminal, else as a table."""
    if not to_terminal():
        table = plain_table("severity", "stream", "consumer", "finding", "what to try")
        for each in found.findings:
            table.add_row(
                each.severity, each.stream_name, each.consumer_name, each.text, each.advice
            )
        return table
    head = Text(
        f"{time.strftime('%H:%M:%S')}  {counted(found.streams, 'stream')},"
        f" {counted(found.consumers, 'consumer')}, {counted(len(found.findings), 'finding')}",
        style="dim",
    )
    if not found.findings:
        return Group(head, Text("all well", style="green"))
    return Group(head, *(line for each in found.findings for line in _paragraph(each)))


def _paragraph(finding: Finding) -> list[RenderableType]:
    """Return a finding for people: a heading with the names, then what was found and what to try.

    Sentences do not fit in the columns of a table.
    """
    names = f"  {finding.stream_name} {finding.consumer_name or ''}".rstrip()
    return [
        Text.assemble((finding.severity, _COLOURS[finding.severity]), names),
        Padding(Text(finding.text), (0, 0, 0, 2)),
        Padding(Text(finding.advice, style="dim"), (0, 0, 0, 2)),
    ]


def _as_json(found: Health) -> dict[str, object]:
    """Return the result of a check as a JSON object."""
    return {
        "streams": found.streams,
        "consumers": found.consumers,
        "well": found.is_well,
        "findings": [
            {
                "kind": each.kind,
                "severity": each.severity,
                "stream_name": each.stream_name,
                "consumer_name": each.consumer_name,
                "figures": each.figures,
                "text": each.text,
                "advice": each.advice,
            }
            for each in found.findings
        ],
    }
