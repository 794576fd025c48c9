"""The options for the settings of a stream, which several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from twinstream.cli.option_types import Bytes, Span
from twinstream.cli.settings.texts import pairs, placement
from twinstream.models import StreamSource

__all__ = [
    "COUNT",
    "DISCARD",
    "REPLICAS",
    "RETENTION",
    "SIZE",
    "SPAN",
    "STORAGE",
    "fields_of",
    "stream_settings",
]

COUNT: Final = click.IntRange(min=-1)
STORAGE: Final = click.Choice(["file", "memory"])
RETENTION: Final = click.Choice(["limits", "interest", "work", "workqueue"])
DISCARD: Final = click.Choice(["old", "new"])
REPLICAS: Final = click.IntRange(1, 5)
SIZE: Final = Bytes(min=-1)
SPAN: Final = Span(zero=True)

_SETTINGS: Final = (
    click.option("--subjects", multiple=True, metavar="SUBJECT,...", help="What it captures."),
    click.option("--description", metavar="TEXT", help="What the stream is for."),
    click.option("--storage", type=STORAGE, help="Where messages are kept."),
    click.option("--replicas", type=REPLICAS, help="Copies in a cluster."),
    click.option("--retention", type=RETENTION, help="Until when messages are kept."),
    click.option("--discard", type=DISCARD, help="What is discarded at a limit."),
    click.option(
        "--discard-per-subject", is_flag=True, help="Refuse messages of a subject at its limit."
    ),
    click.option("--max-msgs", type=COUNT, metavar="N", help="Messages at most; -1: no limit."),
    click.option(
        "--max-msgs-per-subject", type=COUNT, metavar="N", help="Messages of each subject at most."
    ),
    click.option("--max-bytes", type=SIZE, metavar="SIZE", help="Size of the stream at most."),
    click.option("--max-age", type=SPAN, metavar="DURATION", help="Age of messages at most."),
    click.option("--max-msg-size", type=SIZE, metavar="SIZE", help="Size of a message at most."),
    click.option("--max-consumers", type=COUNT, metavar="N", help="Consumers at most."),
    click.option(
        "--dupe-window", type=SPAN, metavar="DURATION", help="How long message ids are known."
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


def stream_settings(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options for the settings of a stream to a command."""
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


def fields_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `StreamConfig` for the options, or answers, that are given."""
    per_subject = given["discard_per_subject"]
    retention = given["retention"]
    fields = {
        "subjects": _subjects(given["subjects"]) or None,
        "description": given["description"],
        "storage": given["storage"],
        "num_replicas": given["replicas"],
        "retention": "workqueue" if retention == "work" else retention,
        "discard": "new" if per_subject else given["discard"],
        "discard_new_per_subject": per_subject or None,
        "max_msgs": given["max_msgs"],
        "max_msgs_per_subject": given["max_msgs_per_subject"],
        "max_bytes": given["max_bytes"],
        "max_age": given["max_age"],
        "max_msg_size": given["max_msg_size"],
        "max_consumers": given["max_consumers"],
        "duplicate_window": given["dupe_window"] or None,  # zero: the server's default
        "compression": given["compression"],
        "mirror": StreamSource(name=given["mirror"]) if given["mirror"] else None,
        "sources": [StreamSource(name=each) for each in given["source"]] or None,
        "placement": placement(given["cluster"], given["tags"]),
        "metadata": pairs(given["metadata"]) or None,
        "no_ack": None if given["ack"] is None else not given["ack"],
        "allow_direct": given["allow_direct"],
        "allow_rollup_hdrs": given["allow_rollup"] or None,
        "deny_delete": _denied(given, "delete"),
        "deny_purge": _denied(given, "purge"),
        "allow_msg_ttl": given["allow_msg_ttl"],
        "allow_msg_counter": given["allow_counter"],
        "allow_atomic": given["allow_batch"],
        "allow_msg_schedules": given["allow_schedules"],
    }
    return {name: value for name, value in fields.items() if value is not None}


def _denied(given: dict[str, Any], what: str) -> bool | None:
    """Return whether an operation is denied, by an option or by an answer."""
    return True if given[f"deny_{what}"] or given.get(f"allow_{what}") is False else None


def _subjects(texts: tuple[str, ...] | str) -> list[str]:
    """Return the subjects of the options, or of an answer, each of which may be a list."""
    whole = texts if isinstance(texts, str) else ",".join(texts)
    return [each.strip() for each in whole.split(",") if each.strip()]
