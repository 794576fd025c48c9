"""The options for the settings of a consumer, which several commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import click

from twinstream.cli.message.start_position import Start, start_text
from twinstream.cli.option_types import Bytes, Span
from twinstream.cli.settings.texts import pairs

__all__ = ["ACK", "COUNT", "REPLAY", "consumer_settings", "fields_of"]

ACK: Final = click.Choice(["explicit", "all", "none"])
REPLAY: Final = click.Choice(["instant", "original"])
COUNT: Final = click.IntRange(min=-1)

_SETTINGS: Final = (
    click.option("--filter", "filters", multiple=True, metavar="SUBJECT,...", help="Its subjects."),
    click.option("--deliver", metavar="all|new|last|subject|SEQ|AGE|TIME", help="Where it starts."),
    click.option("--ack", type=ACK, help="Which messages must be acknowledged."),
    click.option("--replay", type=REPLAY, help="At which rate stored messages are delivered."),
    click.option("--description", metavar="TEXT", help="What the consumer is for."),
    click.option("--pull", is_flag=True, help="Clients fetch messages: the default."),
    click.option("--target", "push_to", metavar="SUBJECT", help="Push the messages to SUBJECT."),
    click.option("--deliver-group", metavar="NAME", help="Queue group of a pushed consumer."),
    click.option("--flow-control", is_flag=True, default=None, help="Of a pushed consumer."),
    click.option("--heartbeat", type=Span(), metavar="DURATION", help="Of a pushed consumer."),
    click.option("--ephemeral", is_flag=True, help="Remove it when it is not used any more."),
    click.option("--wait", type=Span(), metavar="DURATION", help="Until it is delivered again."),
    click.option("--backoff", multiple=True, metavar="DURATION,...", help="Waits, one by one."),
    click.option("--max-deliver", type=COUNT, metavar="N", help="Deliveries at most."),
    click.option("--max-pending", type=COUNT, metavar="N", help="Unacknowledged at most."),
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


def consumer_settings(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options for the settings of a consumer to a command."""
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


def fields_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `ConsumerConfig` for the options, or answers, that are given."""
    filters = _list(given["filters"])
    start = _start(given["deliver"]) if given["deliver"] else None
    pending = given["max_pending"]
    fields = {
        "description": given["description"],
        "deliver_policy": start and start.policy,
        "opt_start_seq": start and start.sequence,
        "opt_start_time": start and start.time,
        "ack_policy": given["ack"],
        "replay_policy": given["replay"],
        "filter_subject": filters[0] if len(filters) == 1 else None,
        "filter_subjects": filters if len(filters) > 1 else None,
        "deliver_subject": given["push_to"],
        "deliver_group": given["deliver_group"],
        "flow_control": given["flow_control"],
        "idle_heartbeat": given["heartbeat"],
        "ack_wait": given["wait"],
        "backoff": _durations(given["backoff"]) or None,
        "max_deliver": given["max_deliver"],
        "max_ack_pending": None if pending == 0 else pending,
        "max_waiting": given["max_waiting"],
        "sample_freq": None if given["sample"] is None else str(given["sample"]),
        "inactive_threshold": given["inactive_threshold"],
        "num_replicas": given["replicas"],
        "mem_storage": given["memory"],
        "headers_only": given["headers_only"],
        "max_batch": given["max_pull_batch"],
        "max_bytes": given["max_pull_bytes"],
        "max_expires": given["max_pull_expire"],
        "metadata": pairs(given["metadata"]) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


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
