"""`twinstream validate`: check configuration files without a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import click
from attrs import evolve

from twinstream.cli.config.sarif import sarif_log
from twinstream.cli.deploy.folder import configs_below, contracts_of
from twinstream.cli.problems import print_problems, print_warnings, problem_as_json
from twinstream.cli.screen import counted, notes, print_json, results
from twinstream.cli.target import json_option
from twinstream.models.files.bounded_read import bounded
from twinstream.models.files.config_files import STDIN_NAME, FileConfigs, Kind, load_configs
from twinstream.models.version import parse_version


@click.command(short_help="Check configuration files without a server.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--server-version",
    "server",
    metavar="VERSION",
    help="Validate for this version of the server, such as 2.12.  [default: the newest]",
)
@click.option(
    "--kind", type=click.Choice(get_args(Kind)), help="The kind of configurations in the files."
)
@click.option("--pedantic", is_flag=True, help="Apply the rules for pedantic requests.")
@click.option("--strict", is_flag=True, help="Count warnings as problems.")
@click.option("--sarif", is_flag=True, help="Print a SARIF log, and nothing else.")
@json_option
def validate(
    files: tuple[str, ...],
    server: str | None,
    kind: Kind | None,
    pedantic: bool,
    strict: bool,
    sarif: bool,
    as_json: bool,
) -> None:
    """Check the configurations in FILES (YAML or JSON; - is standard input).

    Folders are searched for all such files. The files may contain configurations of streams and
    consumers, requests or responses of the API, files of the nats command, and the lists key_values
    and object_stores. The first problem of each configuration is the error that a server would
    return, with its code in brackets. A consumer is checked together with its stream if one of the
    files contains the stream. The JSON Schemas in the payloads of a stream are checked.

    Exits with 1 if there is a problem. Possible problems that only a
    server can decide, and warnings about rarely intended settings, do not count as problems.
    """
    if "-" in files and len(files) > 1:
        raise click.UsageError("read standard input alone, without other files")
    if sarif and as_json:
        raise click.UsageError("choose one of --sarif and --json")
    try:
        parse_version(server)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--server-version") from error
    found = _load(files, server, kind, pedantic)
    good = not found.errors and not (strict and found.warnings)
    if sarif:
        print_json(sarif_log(found))
    elif as_json:
        print_json(_document(found, good))
    else:
        print_problems(results(), found.problems)
        print_warnings(results(), found.warnings)
        notes().print(_summary(found), style="green" if good else "red")
    sys.exit(0 if good else 1)


def _document(found: FileConfigs, good: bool) -> dict[str, object]:
    return {
        "valid": good,
        "configs": [
            {"file": one.file, "line": one.line, "kind": one.kind, "name": one.name}
            for one in found.configs
        ],
        "problems": [problem_as_json(one) for one in found.problems],
        "warnings": [problem_as_json(one) for one in found.warnings],
    }


def _load(
    files: tuple[str, ...], server: str | None, kind: Kind | None, pedantic: bool
) -> FileConfigs:
    if files == ("-",):
        text = bounded(sys.stdin.buffer)
        found = load_configs(STDIN_NAME, server=server, pedantic=pedantic, kind=kind, text=text)
    else:
        paths = configs_below(map(Path, files))
        found = load_configs(paths, server=server, pedantic=pedantic, kind=kind)
    _, problems = contracts_of(found.configs)
    return evolve(found, problems=[*found.problems, *problems])


def _summary(found: FileConfigs) -> str:
    parts = [counted(len(found.configs), "configuration")]
    parts.append(counted(len(found.errors), "problem") if found.errors else "no problem")
    if found.warnings:
        parts.append(counted(len(found.warnings), "warning"))
    return ", ".join(parts)
