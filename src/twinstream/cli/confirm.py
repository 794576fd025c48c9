"""Asking before something is done that cannot be undone."""

from __future__ import annotations

from typing import Final

import click

from twinstream.cli.failures import JSON_ASKED, Failure


def no_question_in_json(*, yes: bool, as_json: bool) -> None:
    """Refuse what would have to ask a machine, before anything is looked at or done."""
    if as_json and not yes:
        raise click.UsageError("--json cannot ask; add --yes")


def _yes(ctx: click.Context, _: click.Parameter, yes: bool) -> bool:
    no_question_in_json(yes=yes, as_json=ctx.meta.get(JSON_ASKED, False))
    return yes


yes_option: Final = click.option("--yes", "-y", is_flag=True, callback=_yes, help="Do not ask.")


def sure(question: str, *, yes: bool) -> None:
    """Ask on standard error; without a yes the command ends with exit code 1."""
    if yes:
        return
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):
            raise
        click.echo(err=True)  # behind the question
        raise Failure("no answer came, and nothing was done; --yes answers") from None
