"""`twinstream version`: print the versions of the command and of what it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click

from twinstream.cli.screen import print_json, print_text
from twinstream.cli.target import json_option


@click.command(short_help="Print the version.")
@json_option
def version(as_json: bool) -> None:
    """Print the version of Twinstream and of Python."""
    found = {"twinstream": version_of("twinstream"), "python": platform.python_version()}
    if as_json:
        print_json(found)
    else:
        print_text(", ".join(f"{name} {number}" for name, number in found.items()))
