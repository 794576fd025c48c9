"""`twinstream stream add`: create a stream from options, or from answers on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from twinstream.cli.failures import arguments_judged
from twinstream.cli.screen import print_json, print_text, results
from twinstream.cli.settings.export import export, export_option
from twinstream.cli.settings.questions import Question, ask, defaults_option
from twinstream.cli.stream.settings import (
    COUNT,
    DISCARD,
    REPLICAS,
    RETENTION,
    SIZE,
    SPAN,
    STORAGE,
    fields_of,
    stream_settings,
)
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import StreamConfig, encode

# What is asked on a terminal, in the order of the `nats` command.
_QUESTIONS: Final = (
    Question("subjects", "Subjects", ""),
    Question("storage", "Storage", "file", STORAGE),
    Question("replicas", "Replication", "1", REPLICAS),
    Question("retention", "Retention policy", "limits", RETENTION),
    Question("discard", "Discard policy", "old", DISCARD),
    Question("max_msgs", "Stream messages limit", "-1", COUNT),
    Question("max_msgs_per_subject", "Per subject messages limit", "-1", COUNT),
    Question("max_bytes", "Total stream size", "-1", SIZE),
    Question("max_age", "Message TTL", "0s", SPAN),
    Question("max_msg_size", "Max message size", "-1", SIZE),
    Question("dupe_window", "Duplicate tracking time window", "2m", SPAN),
    Question("allow_rollup", "Allow message roll-ups", "no", click.BOOL),
    Question("allow_delete", "Allow message deletion", "yes", click.BOOL),
    Question("allow_purge", "Allow purging subjects or the entire stream", "yes", click.BOOL),
)


@click.command(short_help="Create a stream.")
@click.argument("stream", metavar="NAME")
@stream_settings
@defaults_option
@export_option
@json_option
@server_options
def add(
    target: Target,
    stream: str,
    defaults: bool,
    export_file: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Create the stream NAME. An existing stream with the same settings is accepted.

    On a terminal, the command asks for the common settings that are not given, unless --defaults
    is. Without a terminal, the server's defaults apply. With --export, nothing is created, and
    FILE can be given to `twinstream validate` and `twinstream apply`.
    """
    ask(_questions(given), given, silent=defaults or as_json)
    with arguments_judged():
        config = _config(stream, given)
    if export_file is not None:
        export(export_file, encode(config), "StreamConfig")
        print_text(f"wrote {export_file}")
        return
    with target.connect() as nc:
        made = target.jetstream(nc).create_stream(config).info()
    if as_json:
        print_json(encode(made))
        return
    from twinstream.cli.stream.info import show_config, show_state

    print_text(f"created stream {stream}")
    console = results()
    show_config(console, made)
    show_state(console, made)


def _questions(given: dict[str, Any]) -> list[Question]:
    """Return the questions that make sense with the given options."""
    skipped: set[str] = {"subjects"} if given["mirror"] or given["source"] else set()
    if given["deny_delete"]:
        skipped.add("allow_delete")
    if given["deny_purge"]:
        skipped.add("allow_purge")
    return [each for each in _QUESTIONS if each.option not in skipped]


def _config(name: str, given: dict[str, Any]) -> StreamConfig:
    """Return the config of a stream. Raises a usage error if it can capture nothing."""
    fields = fields_of(given)
    if not fields.keys() & {"subjects", "mirror", "sources"}:
        raise click.UsageError(
            "give --subjects, --mirror or --source; on a terminal, the command asks for subjects"
        )
    fields.setdefault("storage", "file")
    return StreamConfig(name=name, **fields)
