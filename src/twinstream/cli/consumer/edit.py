"""`twinstream consumer edit`: change the settings of a consumer."""

from __future__ import annotations

from typing import Any

import click

from twinstream.cli.confirm import yes_option
from twinstream.cli.consumer.settings import consumer_settings, fields_of
from twinstream.cli.failures import arguments_judged
from twinstream.cli.settings.editing import edit_settings
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import ConsumerConfig


@click.command(short_help="Change the settings of a consumer.")
@click.argument("stream")
@click.argument("consumer")
@consumer_settings
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@yes_option
@json_option
@server_options
def edit(
    target: Target,
    stream: str,
    consumer: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Change the given settings of CONSUMER of STREAM; other settings are kept.

    Shows the changes and asks first. Servers refuse to change where a consumer starts, or how it
    is acknowledged.
    """
    with arguments_judged():
        fields = fields_of(given)
    if not fields:
        raise click.UsageError("give at least one setting to change")
    # A consumer has one filter or several, never both.
    if "filter_subject" in fields:
        fields["filter_subjects"] = None
    elif "filter_subjects" in fields:
        fields["filter_subject"] = None
    with target.connect() as nc:
        handle = target.jetstream(nc).get_consumer(stream, consumer)
        edit_settings(
            f"{stream}/{consumer}",
            handle.info().config or ConsumerConfig(),
            fields,
            handle.change,
            named={"name": consumer},
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )
