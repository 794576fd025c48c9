"""``twinstream validate``: check stream and consumer configurations in files, offline."""

from __future__ import annotations

import sys
from typing import Literal

import click

from js_cli.problems import print_problems, problem_as_json
from js_cli.screen import notes, print_json, results
from js_cli.target import json_option
from js_models.files import STDIN_NAME, FileConfigs, load_configs

Kind = Literal["stream", "consumer"]


@click.command(short_help="Check configuration files without a server.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--server",
    "-s",
    metavar="VERSION",
    help="Judge as this version of the server would, such as 2.12.  [default: the newest]",
)
@click.option("--kind", type=click.Choice(["stream", "consumer"]), help="What the files hold.")
@click.option("--pedantic", is_flag=True, help="Judge as the server does in pedantic mode.")
@json_option
def validate(
    files: tuple[str, ...], server: str | None, kind: Kind | None, pedantic: bool, as_json: bool
) -> None:
    """Check the stream and consumer configurations in FILES (YAML or JSON; - is standard input).

    The first problem of each configuration is the error that a server would answer with; its code
    stands in brackets. A consumer is checked together with its stream when one of the files holds
    that. Exits with 1 if there is a problem; what only a server can tell is shown, and is none.
    """
    if "-" in files and len(files) > 1:
        raise click.UsageError("read standard input alone, without other files")
    try:
        found = _load(files, server, kind, pedantic)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--server") from error
    if as_json:
        configs = [
            {"file": one.file, "line": one.line, "kind": one.kind, "name": one.name}
            for one in found.configs
        ]
        problems = [problem_as_json(one) for one in found.problems]
        print_json({"valid": not found.errors, "configs": configs, "problems": problems})
    else:
        print_problems(results(), found.problems)
        notes().print(_summary(found), style="red" if found.errors else "green")
    sys.exit(1 if found.errors else 0)


def _load(
    files: tuple[str, ...], server: str | None, kind: Kind | None, pedantic: bool
) -> FileConfigs:
    if files == ("-",):
        text = sys.stdin.buffer.read()
        return load_configs(STDIN_NAME, server=server, pedantic=pedantic, kind=kind, text=text)
    return load_configs(files, server=server, pedantic=pedantic, kind=kind)


def _summary(found: FileConfigs) -> str:
    configs, errors = len(found.configs), len(found.errors)
    checked = f"{configs} configuration{'' if configs == 1 else 's'}"
    if not errors:
        return f"{checked}, no problem"
    return f"{checked}, {errors} problem{'' if errors == 1 else 's'}"
