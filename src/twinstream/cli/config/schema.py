"""`twinstream schema`: print the JSON Schema of the API, for editors and validators."""

from __future__ import annotations

import json
from pathlib import Path

import click

from twinstream.cli.failures import Failure
from twinstream.models import json_schema, schema_names


@click.command(short_help="Print the JSON Schema of configurations and of every API type.")
@click.option("--type", "name", metavar="NAME", help="Only this type, such as StreamConfig.")
@click.option("--list", "listed", is_flag=True, help="Print the names of the types.")
@click.option("--plain", is_flag=True, help="Leave out the keywords x-..., for strict validators.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write into this file."
)
def schema(name: str | None, listed: bool, plain: bool, out: Path | None) -> None:
    """Print a JSON Schema document (2020-12) without references to other documents.

    The whole document describes configuration files, including those of buckets, so that an editor
    can complete them and mark misspelt settings. Below "$defs" it contains every type of the
    JetStream API.
    """
    if listed:
        text = "\n".join(schema_names())
    else:
        try:
            document = json_schema(name, plain=plain)
        except ValueError as error:
            hint = f"{error}; --list shows all"
            raise click.BadParameter(hint, param_hint="--type") from error
        text = json.dumps(document, ensure_ascii=False, indent=2)
    if out is None:
        click.echo(text)
        return
    try:
        out.write_text(text + "\n", "utf-8")
    except OSError as error:
        raise Failure(f"cannot write {out}: {error.strerror or error}") from error
