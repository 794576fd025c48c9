"""Confirmation by the user before an operation that cannot be undone."""

from __future__ import annotations

from typing import Final

import click

from twinstream.cli.escapes import harmless
from twinstream.cli.failures import JSON_ASKED, Failure


def no_question_in_json(*, yes: bool, as_json: bool) -> None:
    """Raise a usage error if a command with `--json` would ask for confirmation.

    Commands call this function before they do any work.
    """
    if as_json and not yes:
        raise click.UsageError("--json cannot ask; add --yes")


def _yes(ctx: click.Context, _: click.Parameter, yes: bool) -> bool:
    no_question_in_json(yes=yes, as_json=ctx.meta.get(JSON_ASKED, False))
    return yes


yes_option: Final = click.option(
    "--yes", "-y", "--force", "-f", "yes", is_flag=True, callback=_yes, help="Do not ask."
)


unasked_option: Final = click.option(
    "--yes",
    "-y",
    "--force",
    "-f",
    is_flag=True,
    expose_value=False,
    hidden=True,
    help="Accepted as by the `nats` command, which asks; this command never does.",
)


whole_bucket_option: Final = click.option(
    "--bucket", "whole", is_flag=True, help="Delete BUCKET itself, with all that it contains."
)


def check_what(name: str | None, *, whole: bool, argument: str) -> None:
    """Raise a usage error unless either a name in a bucket or the whole bucket is given.

    A script whose variable for the name is empty must not delete the bucket.
    """
    if (name is None) is not whole:
        raise click.UsageError(f"give a {argument}, or --bucket to delete BUCKET itself")


def sure(question: str, *, yes: bool) -> None:
    """Ask the question on standard error. Return at once if `yes` is true.

    If the user does not confirm, or standard input has ended, the command ends with exit code 1.
    """
    if yes:
        return
    try:
        # The question may contain text of others, such as the target of a schedule.
        click.confirm(harmless(question), abort=True, err=True)
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):
            raise
        click.echo(err=True)  # end the line of the question
        raise Failure("the question was not answered, nothing was done; add --yes") from None
