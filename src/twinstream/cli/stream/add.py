"""``twinstream stream add``: create a stream from options, or from answers on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from twinstream.cli.export import export, export_option
from twinstream.cli.failures import arguments_judged
from twinstream.cli.option_types import Bytes, Span
from twinstream.cli.questions import Question, ask, defaults_option
from twinstream.cli.screen import print_json, print_text, results
from twinstream.cli.setting_texts import pairs, placement
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import StreamConfig, StreamSource, encode

_COUNT: Final = click.IntRange(min=-1)
_STORAGE: Final = click.Choice(["file", "memory"])
_RETENTION: Final = click.Choice(["limits", "interest", "work", "workqueue"])
_DISCARD: Final = click.Choice(["old", "new"])
_REPLICAS: Final = click.IntRange(1, 5)
_SIZE: Final = Bytes(min=-1)
_SPAN: Final = Span(zero=True)

_SETTINGS: Final = (
    click.option("--subjects", multiple=True, metavar="SUBJECT,...", help="What it captures."),
    click.option("--description", metavar="TEXT", help="What the stream is for."),
    click.option("--storage", type=_STORAGE, help="Where messages are kept."),
    click.option("--replicas", type=_REPLICAS, help="Copies in a cluster."),
    click.option("--retention", type=_RETENTION, help="Until when messages are kept."),
    click.option("--discard", type=_DISCARD, help="What is discarded at a limit."),
    click.option(
        "--discard-per-subject", is_flag=True, help="Refuse messages of a subject at its limit."
    ),
    click.option("--max-msgs", type=_COUNT, metavar="N", help="Messages at most; -1: no limit."),
    click.option(
        "--max-msgs-per-subject", type=_COUNT, metavar="N", help="Messages of each subject at most."
    ),
    click.option("--max-bytes", type=_SIZE, metavar="SIZE", help="Size of the stream at most."),
    click.option("--max-age", type=_SPAN, metavar="DURATION", help="Age of messages at most."),
    click.option("--max-msg-size", type=_SIZE, metavar="SIZE", help="Size of a message at most."),
    click.option("--max-consumers", type=_COUNT, metavar="N", help="Consumers at most."),
    click.option(
        "--dupe-window", type=_SPAN, metavar="DURATION", help="How long message ids are known."
    ),
    click.option("--compression", type=click.Choice(["none", "s2"]), help="Of the files on disk."),
    click.option("--mirror", metavar="STREAM", help="The stream of which this one is a copy."),
    click.option("--source", multiple=True, metavar="STREAM", help="A stream to collect from."),
    click.option("--cluster", metavar="NAME", help="The cluster to be in."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag of servers to be on."),
    click.option("--metadata", multiple=True, metavar="NAME=VALUE", help="A text to keep."),
    click.option("--ack/--no-ack", "ack", default=None, help="Whether publishers get an answer."),
    click.option("--allow-direct", is_flag=True, default=None, help="Let replicas answer reads."),
    click.option(
        "--allow-rollup", is_flag=True, default=None, help="Let messages replace earlier ones."
    ),
    click.option("--deny-delete", is_flag=True, default=None, help="Refuse to remove a message."),
    click.option("--deny-purge", is_flag=True, default=None, help="Refuse purges."),
    click.option("--allow-msg-ttl", is_flag=True, default=None, help="TTL per message (2.11)."),
    click.option("--allow-counter", is_flag=True, default=None, help="Counters (2.12)."),
    click.option("--allow-batch", is_flag=True, default=None, help="Atomic batches (2.12)."),
    click.option("--allow-schedules", is_flag=True, default=None, help="Schedules (2.12)."),
)

_QUESTIONS: Final = (
    Question("subjects", "Subjects", ""),
    Question("storage", "Storage", "file", _STORAGE),
    Question("replicas", "Replication", "1", _REPLICAS),
    Question("retention", "Retention policy", "limits", _RETENTION),
    Question("discard", "Discard policy", "old", _DISCARD),
    Question("max_msgs", "Stream messages limit", "-1", _COUNT),
    Question("max_msgs_per_subject", "Per subject messages limit", "-1", _COUNT),
    Question("max_bytes", "Total stream size", "-1", _SIZE),
    Question("max_age", "Message TTL", "0s", _SPAN),
    Question("max_msg_size", "Max message size", "-1", _SIZE),
    Question("dupe_window", "Duplicate tracking time window", "2m", _SPAN),
    Question("allow_rollup", "Allow message roll-ups", "no", click.BOOL),
    Question("allow_delete", "Allow message deletion", "yes", click.BOOL),
    Question("allow_purge", "Allow purging subjects or the entire stream", "yes", click.BOOL),
)
"""What is asked on a terminal, in the order of the `nats` command."""


def _settings(command: Callable[..., object]) -> Callable[..., object]:
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


@click.command(short_help="Create a stream.")
@click.argument("stream", metavar="NAME")
@_settings
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
    subjects = _subjects(given["subjects"])
    if not (subjects or given["mirror"] or given["source"]):
        raise click.UsageError(
            "give --subjects, --mirror or --source; on a terminal, the command asks for subjects"
        )
    retention = given["retention"]
    window = given["dupe_window"]
    return StreamConfig(
        name=name,
        subjects=subjects or None,
        description=given["description"],
        storage=given["storage"] or "file",
        num_replicas=given["replicas"],
        retention="workqueue" if retention == "work" else retention,
        discard="new" if given["discard_per_subject"] else given["discard"],
        discard_new_per_subject=given["discard_per_subject"] or None,
        max_msgs=given["max_msgs"],
        max_msgs_per_subject=given["max_msgs_per_subject"],
        max_bytes=given["max_bytes"],
        max_age=given["max_age"],
        max_msg_size=given["max_msg_size"],
        max_consumers=given["max_consumers"],
        duplicate_window=window or None,  # zero: the server's default
        compression=given["compression"],
        mirror=StreamSource(name=given["mirror"]) if given["mirror"] else None,
        sources=[StreamSource(name=each) for each in given["source"]] or None,
        placement=placement(given["cluster"], given["tags"]),
        metadata=pairs(given["metadata"]) or None,
        no_ack=None if given["ack"] is None else not given["ack"],
        allow_direct=given["allow_direct"],
        allow_rollup_hdrs=given["allow_rollup"] or None,
        deny_delete=_denied(given, "delete"),
        deny_purge=_denied(given, "purge"),
        allow_msg_ttl=given["allow_msg_ttl"],
        allow_msg_counter=given["allow_counter"],
        allow_atomic=given["allow_batch"],
        allow_msg_schedules=given["allow_schedules"],
    )


def _denied(given: dict[str, Any], what: str) -> bool | None:
    """Return whether an operation is denied, by an option or by an answer."""
    return True if given[f"deny_{what}"] or given.get(f"allow_{what}") is False else None


def _subjects(texts: tuple[str, ...] | str) -> list[str]:
    """Return the subjects of the options, or of an answer, each of which may be a list."""
    whole = texts if isinstance(texts, str) else ",".join(texts)
    return [each.strip() for each in whole.split(",") if each.strip()]
