"""The option `--names` of the commands that list things."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from twinstream.cli.screen import print_json, print_text

names_option: Final = click.option(
    "--names", "-n", is_flag=True, help="Only the names, one on each line."
)


def print_names(names: Iterable[str], member: str, *, as_json: bool, **more: str) -> None:
    """Print names in alphabetical order.

    In JSON, `member` contains the name; `more` are the other members.
    """
    for name in sorted(names):
        if as_json:
            print_json({**more, member: name})
        else:
            print_text(name)
