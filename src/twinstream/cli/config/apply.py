"""`twinstream apply`: create and update streams, consumers and buckets as in a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinstream.cli.confirm import sure, yes_option
from twinstream.cli.deploy.options import make_plan, plan_options
from twinstream.cli.deploy.show import as_json as plan_as_json
from twinstream.cli.deploy.show import print_plan, summary
from twinstream.cli.deploy.step import Allowed, Step
from twinstream.cli.deploy.step_execution import carry_out
from twinstream.cli.failures import Failure
from twinstream.cli.interrupts import asked_to_stop
from twinstream.cli.problems import print_warnings
from twinstream.cli.screen import alerts, print_json, print_text, results
from twinstream.cli.target import Target, json_option, server_options
from twinstream.core.hooks import HOOKS, reached

if TYPE_CHECKING:
    from js_sync import JetStream

DONE = {"create": "created", "update": "updated", "recreate": "re-created"}


@click.command(short_help="Create and update the streams and consumers of a folder.")
@plan_options
@yes_option
@json_option
@server_options
def apply(
    target: Target, paths: tuple[Path, ...], allowed: Allowed, yes: bool, as_json: bool
) -> None:
    """Create and update streams, consumers and buckets, so that the server matches FOLDER.

    Shows the plan and asks first. If any change is impossible or refused, nothing is changed. A
    change that loses messages or cannot be undone needs --allow-loss. A stream or consumer that
    cannot be updated in place needs --allow-recreate. Streams and consumers that no file mentions
    are not changed.

    If the server refuses a step, or after Ctrl-C, the completed steps are not undone.
    """
    with target.connect() as nc:
        jet = target.jetstream(nc)
        version = nc.server_info.version
        steps, dropped = make_plan(jet, version, paths, allowed, as_json=as_json)
        refused = any(step.verb == "refused" for step in steps)
        if not as_json:
            print_warnings(results(), dropped)
            print_plan(results(), steps)
            results().print(summary(steps), style="red" if refused else "green")
        done: list[Step] = []
        failure: Failure | None = None
        if not refused:
            failure = _apply(jet, steps, done, yes=yes, quiet=as_json)
    if as_json:
        applied = not refused and failure is None
        print_json(plan_as_json(version, steps, dropped, applied=applied, done=done))
    elif refused:
        alerts().print("nothing was changed", style="red")
    if failure is not None:
        raise failure
    sys.exit(1 if refused else 0)


def _apply(
    jet: JetStream, steps: list[Step], done: list[Step], *, yes: bool, quiet: bool
) -> Failure | None:
    """Ask the user, then carry out the steps that change something.

    Append each completed step to `done`. Stop at the first step that fails, or after Ctrl-C, and
    return a `Failure`. Return None if all steps succeed.
    """
    due = [step for step in steps if step.is_due]
    sure("Carry this out?", yes=yes or not due)
    # Ctrl-C takes effect only between steps. So it cannot end a re-creation between the removal of
    # the old stream or consumer and the creation of the new one.
    with asked_to_stop("finishing the current step") as stop:
        for step in due:
            if stop.is_set():
                return _stopped("interrupted", done, due)
            if HOOKS:
                reached("command: before step", jet)
            try:
                carry_out(jet, step)
            except Failure as failure:
                return _stopped(failure.message, done, due, failure.__cause__)
            done.append(step)
            if not quiet:
                print_text(f"{DONE[step.verb]} {step.title}")
    return None


def _stopped(
    reason: str, done: list[Step], due: list[Step], cause: BaseException | None = None
) -> Failure:
    how_far = f"{len(done)} of {len(due)} steps done; `apply` continues from there"
    failure = Failure(f"{reason}\n{how_far}")
    failure.__cause__ = cause
    return failure
