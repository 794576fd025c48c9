"""``twinstream consumer add``: create a consumer from options, or from answers on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click

from twinstream.cli.export import export, export_option
from twinstream.cli.failures import arguments_judged
from twinstream.cli.message.start_position import Start, start_text
from twinstream.cli.option_types import Bytes, Span
from twinstream.cli.questions import Question, ask, defaults_option
from twinstream.cli.screen import print_json, print_text, results
from twinstream.cli.setting_texts import pairs
from twinstream.cli.target import Target, json_option, server_options
from twinstream.models import ConsumerConfig, encode

_ACK: Final = click.Choice(["explicit", "all", "none"])
_REPLAY: Final = click.Choice(["instant", "original"])
_COUNT: Final = click.IntRange(min=-1)

_SETTINGS: Final = (
    click.option("--filter", "filters", multiple=True, metavar="SUBJECT,...", help="Its subjects."),
    click.option("--deliver", metavar="all|new|last|subject|SEQ|AGE|TIME", help="Where it starts."),
    click.option("--ack", type=_ACK, help="Which messages must be acknowledged."),
    click.option("--replay", type=_REPLAY, help="At which rate stored messages are delivered."),
    click.option("--description", metavar="TEXT", help="What the consumer is for."),
    click.option("--pull", is_flag=True, help="Clients fetch messages: the default."),
    click.option("--target", "push_to", metavar="SUBJECT", help="Push the messages to SUBJECT."),
    click.option("--deliver-group", metavar="NAME", help="Queue group of a pushed consumer."),
    click.option("--flow-control", is_flag=True, default=None, help="Of a pushed consumer."),
    click.option("--heartbeat", type=Span(), metavar="DURATION", help="Of a pushed consumer."),
    click.option("--ephemeral", is_flag=True, help="Remove it when it is not used any more."),
    click.option("--wait", type=Span(), metavar="DURATION", help="Until it is delivered again."),
    click.option("--backoff", multiple=True, metavar="DURATION,...", help="Waits, one by one."),
    click.option("--max-deliver", type=_COUNT, metavar="N", help="Deliveries at most."),
    click.option("--max-pending", type=_COUNT, metavar="N", help="Unacknowledged at most."),
    click.option("--max-waiting", type=click.IntRange(min=1), metavar="N", help="Pulls at most."),
    click.option("--sample", type=click.IntRange(0, 100), metavar="PERCENT", help="Of the acks."),
    click.option(
        "--inactive-threshold", type=Span(), metavar="DURATION", help="Unused until it is removed."
    ),
    click.option("--replicas", type=click.IntRange(0, 5), help="Copies; 0: as the stream."),
    click.option("--memory", is_flag=True, default=None, help="Keep its state in memory."),
    click.option("--headers-only", is_flag=True, default=None, help="Deliver no payloads."),
    click.option("--max-pull-batch", type=click.IntRange(min=1), metavar="N", help="Of one pull."),
    click.option("--max-pull-bytes", type=Bytes(), metavar="SIZE", help="Of one pull."),
    click.option("--max-pull-expire", type=Span(), metavar="DURATION", help="Of one pull."),
    click.option("--metadata", multiple=True, metavar="NAME=VALUE", help="A text to keep."),
)

_QUESTIONS: Final = (
    Question("deliver", "Start policy (all, new, last, subject, 1h, sequence)", "all"),
    Question("ack", "Acknowledgment policy", "explicit", _ACK),
    Question("replay", "Replay policy", "instant", _REPLAY),
    Question("filters", "Filter stream by subjects (blank for all)", ""),
    Question("max_deliver", "Maximum allowed deliveries", "-1", _COUNT),
    Question("max_pending", "Maximum acknowledgments pending", "0", _COUNT),
)
"""What is asked on a terminal, in the order of the `nats` command."""


def _settings(command: Callable[..., object]) -> Callable[..., object]:
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


@click.command(short_help="Create a consumer.")
@click.argument("stream")
@click.argument("name", required=False)
@_settings
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
    filters = _list(given["filters"])
    start = _start(given["deliver"] or "all")
    ephemeral = given["ephemeral"]
    pending = given["max_pending"]
    return ConsumerConfig(
        durable_name=None if ephemeral else name,
        name=name if ephemeral else None,
        description=given["description"],
        deliver_policy=start.policy,
        opt_start_seq=start.sequence,
        opt_start_time=start.time,
        ack_policy=given["ack"] or "explicit",
        replay_policy=given["replay"],
        filter_subject=filters[0] if len(filters) == 1 else None,
        filter_subjects=filters if len(filters) > 1 else None,
        deliver_subject=given["push_to"],
        deliver_group=given["deliver_group"],
        flow_control=given["flow_control"],
        idle_heartbeat=given["heartbeat"],
        ack_wait=given["wait"],
        backoff=_durations(given["backoff"]) or None,
        max_deliver=given["max_deliver"],
        max_ack_pending=None if pending == 0 else pending,
        max_waiting=given["max_waiting"],
        sample_freq=None if given["sample"] is None else str(given["sample"]),
        inactive_threshold=given["inactive_threshold"],
        num_replicas=given["replicas"],
        mem_storage=given["memory"],
        headers_only=given["headers_only"],
        max_batch=given["max_pull_batch"],
        max_bytes=given["max_pull_bytes"],
        max_expires=given["max_pull_expire"],
        metadata=pairs(given["metadata"]) or None,
    )


def _start(text: str) -> Start:
    if text == "subject":
        return Start(policy="last_per_subject")
    return start_text(text)


def _list(texts: tuple[str, ...] | str) -> list[str]:
    """Return the items of options, or of an answer, each of which may be a list with commas."""
    whole = texts if isinstance(texts, str) else ",".join(texts)
    return [each.strip() for each in whole.split(",") if each.strip()]


def _durations(texts: tuple[str, ...]) -> list[timedelta]:
    span = Span()
    return [span.convert(each, None, None) for each in _list(texts)]
