"""The common part of `plan` and `apply`: their options, and the creation of the plan."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinstream.cli.deploy.compare import compare
from twinstream.cli.deploy.folder import read_folder
from twinstream.cli.deploy.step import Allowed, Step
from twinstream.cli.failures import Failure
from twinstream.cli.problems import print_problems, problem_as_json
from twinstream.cli.screen import alerts, print_json, results
from twinstream.models import FileProblem
from twinstream.models.version import parse_version

if TYPE_CHECKING:
    from js_sync import JetStream


def plan_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the argument for folders and the --allow options to a command.

    The command gets the values as `paths` and `allowed`.
    """

    @functools.wraps(command)
    def with_allowed(*args: Any, **options: Any) -> object:
        allowed = Allowed(
            options.pop("allow_loss"), options.pop("allow_recreate"), options.pop("allow_break")
        )
        return command(*args, allowed=allowed, **options)

    decorated: Callable[..., object] = with_allowed
    for option in (
        click.option(
            "--allow-recreate",
            is_flag=True,
            help="Re-create what cannot be updated in place; its messages and position are lost.",
        ),
        click.option(
            "--allow-break",
            is_flag=True,
            help="Change schemas of payloads so that stored messages may not fit any more.",
        ),
        click.option(
            "--allow-loss",
            is_flag=True,
            help="Make changes that remove messages or cannot be undone.",
        ),
        click.argument(
            "paths",
            nargs=-1,
            required=True,
            type=click.Path(exists=True, path_type=Path),
            metavar="FOLDER...",
        ),
    ):
        decorated = option(decorated)
    return decorated


def make_plan(
    jet: JetStream, server: str, paths: tuple[Path, ...], allowed: Allowed, *, as_json: bool
) -> tuple[list[Step], list[FileProblem]]:
    """Read the files and compare them with the server. Exit with 1 if the files have problems.

    Return the steps, and a warning for each setting that the server would silently drop.
    """
    try:
        parse_version(server)
    except ValueError as error:
        raise Failure(str(error)) from error
    wanted = read_folder(paths, server)
    if not wanted.problems:
        return compare(jet, wanted, server, allowed), wanted.dropped
    if as_json:
        print_json({"server": server, "problems": [problem_as_json(p) for p in wanted.problems]})
    else:
        print_problems(results(), wanted.problems)
        alerts().print("nothing was compared: the configurations have problems", style="red")
    sys.exit(1)
