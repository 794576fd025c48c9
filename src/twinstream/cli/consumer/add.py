"""`twinstream consumer add`: create a consumer from options, or from answers on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from twinstream.cli.consumer.settings import ACK, COUNT, REPLAY, consumer_settings, fields_of
from twinstream.cli.failures import arguments_judged
from twinstream.cli.screen import print_json, print_text, results
from twinstream.cli.settings.export import export, export_option
from twinstream.cli.settings.questions import Question, ask, defaults_option
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import ConsumerConfig, encode

# What is asked on a terminal, in the order of the `nats` command.
_QUESTIONS: Final = (
    Question("deliver", "Start policy (all, new, last, subject, 1h, sequence)", "all"),
    Question("ack", "Acknowledgment policy", "explicit", ACK),
    Question("replay", "Replay policy", "instant", REPLAY),
    Question("filters", "Filter stream by subjects (blank for all)", ""),
    Question("max_deliver", "Maximum allowed deliveries", "-1", COUNT),
    Question("max_pending", "Maximum acknowledgments pending", "0", COUNT),
)


@click.command(short_help="Create a consumer.")
@click.argument("stream")
@click.argument("name", required=False)
@consumer_settings
@defaults_option
@export_option
@json_option
@server_options
def add(
    target: Target,
    stream: str,
    name: str | None,
    defaults: bool,
    export_file: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Create the durable consumer NAME of STREAM, or with --ephemeral one without a name.

    An existing consumer with the same settings is accepted. --deliver is the first message: `all`,
    `new`, `last`, `subject` (the last of each subject), a sequence, an age such as 2m, or a time.
    On a terminal, the command asks for the common settings that are not given, unless --defaults
    is. With --export, nothing is created, and FILE can be given to `twinstream validate` and
    `twinstream apply`.
    """
    if given["pull"] and given["push_to"]:
        raise click.UsageError("give --pull or --target, not both")
    if name is None and not given["ephemeral"]:
        raise click.UsageError("give the NAME of the consumer, or --ephemeral")
    ask(_QUESTIONS, given, silent=defaults or as_json)
    with arguments_judged():
        config = _config(name, given)
    if export_file is not None:
        if name is None:
            raise click.UsageError("a consumer in a file needs a NAME")
        members = {"stream_name": stream, "config": encode(config)}
        export(export_file, members, "ConsumerCreateRequest")
        print_text(f"wrote {export_file}")
        return
    with target.connect() as nc:
        made = target.jetstream(nc).bind_stream(stream).create_consumer(config).info()
    if as_json:
        print_json(encode(made))
        return
    from twinstream.cli.consumer.info import show_config, show_state

    print_text(f"created consumer {stream}/{made.name}")
    console = results()
    if made.config is not None:
        show_config(console, made.config)
    show_state(console, made)


def _config(name: str | None, given: dict[str, Any]) -> ConsumerConfig:
    kind: dict[str, Any] = {"name": name} if given["ephemeral"] else {"durable_name": name}
    fields: dict[str, Any] = {"deliver_policy": "all", "ack_policy": "explicit", **fields_of(given)}
    return ConsumerConfig(**kind, **fields)
