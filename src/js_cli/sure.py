"""Asking before something is done that cannot be undone."""

from __future__ import annotations

from typing import Final

import click

yes_option: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def sure(question: str, *, yes: bool) -> None:
    """Ask on standard error; without a yes the command ends with exit code 1."""
    if not yes:
        click.confirm(question, abort=True, err=True)
