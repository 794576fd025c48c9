"""`twinstream plan`: show how a server differs from a folder of configurations."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from attrs import asdict

from twinstream.cli.deploy.last_messages import checked_last
from twinstream.cli.deploy.options import make_plan, plan_options
from twinstream.cli.deploy.show import as_json as plan_as_json
from twinstream.cli.deploy.show import print_checked, print_plan, summary
from twinstream.cli.deploy.step import Allowed
from twinstream.cli.problems import print_warnings
from twinstream.cli.screen import print_json, results
from twinstream.cli.target import Target, json_option, server_options


@click.command(short_help="Show how a server differs from a folder of configurations.")
@plan_options
@click.option("--check", is_flag=True, help="Exit with 1 also if something would change.")
@click.option(
    "--check-last",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also decode the last N stored messages of each subject that has a schema.",
)
@json_option
@server_options
def plan(
    target: Target,
    paths: tuple[Path, ...],
    allowed: Allowed,
    check: bool,
    check_last: int | None,
    as_json: bool,
) -> None:
    """Compare the configurations in FOLDER with those of the server, and change nothing.

    Configurations are compared as the server stores them, so defaults make no difference. The steps
    are ordered so that subjects and filters can move from one stream or consumer to another. A step
    is refused if there is no such order, or not enough storage for a new stream. Exits with 1 if a
    change is impossible or refused. Settings that a server before 2.12 would silently drop are
    shown as warnings. Streams and consumers that no file mentions are ignored. Schemas of payloads
    are compared with those of the last apply; with --check-last, exits with 1 also if a stored
    message does not fit.
    """
    with target.connect() as nc:
        jet = target.jetstream(nc)
        version = nc.server_info.version
        steps, dropped = make_plan(jet, version, paths, allowed, as_json=as_json)
        checked = [] if check_last is None else checked_last(jet, steps, check_last)
    refused = any(step.verb == "refused" for step in steps)
    misfit = any(one.misfits for one in checked)
    changing = any(step.verb != "nothing" for step in steps)
    if as_json:
        last = [asdict(one) for one in checked]
        print_json(plan_as_json(version, steps, dropped, applied=False) | {"checked": last})
    else:
        print_warnings(results(), dropped)
        print_plan(results(), steps)
        print_checked(results(), checked)
        results().print(summary(steps), style="red" if refused else "green")
    sys.exit(1 if refused or misfit or (check and changing) else 0)
