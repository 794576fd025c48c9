"""`twinstream stream edit` and `copy`: configurations that are made from existing ones."""

from __future__ import annotations

from typing import Any

import click

from twinstream.cli.confirm import yes_option
from twinstream.cli.failures import arguments_judged
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.settings.editing import edit_settings
from twinstream.cli.stream.settings import fields_of, stream_settings
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import encode, evolve

# The prefix of metadata that servers add.
_SERVERS_OWN = "_nats."


@click.command(short_help="Change the settings of a stream.")
@click.argument("stream")
@stream_settings
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@yes_option
@json_option
@server_options
def edit(
    target: Target, stream: str, dry_run: bool, yes: bool, as_json: bool, **given: Any
) -> None:
    """Change the given settings of STREAM; other settings are kept.

    Shows the changes and asks first. `twinstream plan` also says which messages a change would
    remove.
    """
    with arguments_judged():
        fields = fields_of(given)
    if not fields:
        raise click.UsageError("give at least one setting to change")
    with target.connect() as nc:
        handle = target.jetstream(nc).get_stream(stream)
        edit_settings(
            stream,
            handle.info().config,
            fields,
            handle.change,
            named={"stream": stream},
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )


@click.command(short_help="Create a stream with the settings of another one.")
@click.argument("stream")
@click.argument("destination")
@stream_settings
@json_option
@server_options
def copy(target: Target, stream: str, destination: str, as_json: bool, **given: Any) -> None:
    """Create the stream DESTINATION with the settings of STREAM, except those that are given.

    Only the settings are copied, no messages and no consumers. Two streams cannot capture the same
    subjects, so a copy of a stream with subjects needs --subjects.
    """
    with arguments_judged():
        fields = fields_of(given)
    with target.connect() as nc:
        jet = target.jetstream(nc)
        old = jet.get_stream(stream).info().config
        if old.subjects and "subjects" not in fields:
            raise click.UsageError(
                f"give --subjects: {destination} cannot capture those of {stream}, too"
            )
        kept = {
            name: text
            for name, text in (old.metadata or {}).items()
            if not name.startswith(_SERVERS_OWN)
        }
        config = evolve(old, **{"name": destination, "metadata": kept or None, **fields})
        made = jet.create_stream(config).info()
    if as_json:
        print_json(encode(made))
    else:
        print_text(f"created stream {destination} with the settings of {stream}")
