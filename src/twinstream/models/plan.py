"""Plans: the action that gives a stream or consumer an intended config, and its effects.

Two configs are compared as the server stores them. So explicit defaults, values that the server
fills in, and the metadata that the server adds make no difference.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

from attrs import Factory, frozen

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.error_codes import INVALID_JSON
from twinstream.models.mirror_start import keep_start
from twinstream.models.names.filters import covers, filters_of
from twinstream.models.problem import Problem
from twinstream.models.rules.stream_stored import SEALED
from twinstream.models.stored_config import stored_consumer_members, stored_stream_members
from twinstream.models.times.duration import Duration
from twinstream.models.times.go_time import go_time
from twinstream.models.updates import validate_consumer_update, validate_stream_update
from twinstream.models.validation import Config, validate_consumer, validate_stream
from twinstream.models.version import Version, parse_version

Action: TypeAlias = Literal["create", "nothing", "update", "impossible"]


@frozen
class Change:
    """A setting that an update would change."""

    path: str
    """The name of the setting, such as `max_age`, or `metadata.` with the name of an entry."""

    old: object
    """The current value; None if the setting is not set."""

    new: object
    """The new value; None if the update would remove the setting."""


@frozen
class Plan:
    """The action that gives a stream or consumer an intended config, and its effects."""

    action: Action
    """`create`, `nothing`, `update` or `impossible`."""

    changes: list[Change] = Factory(list[Change])
    """The settings that would change, sorted by name."""

    problems: list[Problem] = Factory(list[Problem])
    """Why the action is impossible, and possible problems that only the server can decide."""

    losses: list[str] = Factory(list[str])
    """The permanent effects of the update, such as removed messages, one sentence each."""


def plan_stream(old: Config | None, new: Config, server: str | None = None) -> Plan:
    """Return the plan to give a stream the config `new`.

    Two settings of mirrors are not compared. The server copies `mirror_direct` from the origin.
    Clusters remove `duplicate_window`, which has no effect without publishers. Times are equal if
    they differ only in their time zone. An update must still contain the start time of a mirror in
    the notation that the server returns.

    Args:
        old: The config on the server, None if the stream does not exist.
        new: The intended config.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ValueError: `server` is not a supported version, or `old` cannot be read.
    """
    if old is None:
        return _creation(validate_stream(new, server))
    new = keep_start(old, new) or new
    problems = validate_stream_update(old, new, server)
    if _unreadable(problems):
        return Plan("impossible", problems=problems)
    version = parse_version(server)
    before, after = (stored_stream_members(config, version) for config in (old, new))
    for members in (before, after):
        if members["sealed"]:
            members.update(SEALED)
        if "republish" in members:
            members["republish"] = _everywhere(members["republish"])
    if "mirror" in before and "mirror" in after:
        for members in (before, after):
            members.pop("mirror_direct", None)
            members.pop("duplicate_window", None)
    changes = _changes(before, after)
    losses = [loss for change in changes for loss in _losses(change)]
    return _change(changes, problems, losses)


def plan_consumer(
    old: Config | None,
    new: Config,
    stream: Config | None = None,
    server: str | None = None,
) -> Plan:
    """Return the plan to give a consumer the config `new`.

    `pause_until` is not compared, because an update does not change it.

    Args:
        old: The config on the server, None if the consumer does not exist.
        new: The intended config.
        stream: The config of the consumer's stream. None skips the rules that need the stream, and
            the search for messages that the update would remove.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ValueError: `server` is not a supported version, or `old` cannot be read.
    """
    if old is None:
        return _creation(validate_consumer(new, stream, server))
    problems = validate_consumer_update(old, new, stream, server)
    if _unreadable(problems):
        return Plan("impossible", problems=problems)
    version = parse_version(server)
    before = stored_consumer_members(old, stream, version)
    durable = "durable_name" in before
    after = stored_consumer_members(new, stream, version, was_durable=durable)
    ignored = {"pause_until"}
    if before.get("sourcing") and after.get("sourcing") and "durable_name" in after:
        # A durable consumer with `sourcing` feeds a copy of the stream. The server starts it at the
        # position that the copy has reached, so the start settings have no effect.
        ignored |= {"deliver_policy", "opt_start_seq", "opt_start_time"}
    for members in (before, after):
        for name in ignored:
            members.pop(name, None)
        if members.get("max_ack_pending", 0) < 0:
            # The server stores a negative value from the stream's consumer_limits unchanged, but
            # changes a negative value in a request to -1.
            members["max_ack_pending"] = -1
    losses = [] if stream is None else _interest_lost(before, after, stream, version)
    return _change(_changes(before, after), problems, losses)


def _change(changes: list[Change], problems: list[Problem], losses: list[str]) -> Plan:
    """Return the plan for an existing stream or consumer.

    Without changes the action is `nothing` even if there are problems, because a server may refuse
    a config that it has stored before.
    """
    if not changes:
        return Plan("nothing")
    if _errors(problems):
        return Plan("impossible", problems=problems)
    return Plan("update", changes, problems, losses)


def _everywhere(republish: JsonObject) -> JsonObject:
    """Return a `republish` setting as an update stores it: empty values become `>`.

    When a server creates a stream, it keeps an empty destination. It also keeps an empty source if
    the stream's transform has no destination. An empty value has the same effect as `>`.
    """
    return {**republish, "src": republish.get("src") or ">", "dest": republish["dest"] or ">"}


def _unreadable(problems: list[Problem]) -> bool:
    """Whether a setting could not be read, so that the configs cannot be compared."""
    return any(problem.err_code == INVALID_JSON for problem in problems)


def _creation(problems: list[Problem]) -> Plan:
    return Plan("impossible" if _errors(problems) else "create", problems=problems)


def _errors(problems: list[Problem]) -> bool:
    return any(not problem.needs_server for problem in problems)


def _changes(before: JsonObject, after: JsonObject) -> list[Change]:
    """Return the differences of two stored configs.

    Each metadata key is a separate setting. Metadata that the server adds is ignored.
    """
    old, new = _flat(before), _flat(after)
    return [
        Change(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if _moments(old.get(path), path) != _moments(new.get(path), path)
    ]


def _moments(value: Any, name: str) -> Any:
    """Return a setting with its times converted to numbers that do not depend on time zones."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return {name: _moments(each, name) for name, each in members.items()}
    if isinstance(value, list):
        return [_moments(each, name) for each in cast("list[object]", value)]
    return go_time(value) if isinstance(value, str) and name.endswith("_time") else value


def _flat(members: JsonObject) -> JsonObject:
    # An empty object is equivalent to an absent one. Servers store some empty objects and omit
    # others.
    flat = {name: value for name, value in members.items() if name != "metadata" and value != {}}
    for key, text in members.get("metadata", {}).items():
        if not key.startswith("_nats."):
            flat[f"metadata.{key}"] = text
    return flat


_SHRINKING = {
    "max_msgs": "messages beyond the newest {new}",
    "max_bytes": "messages beyond the newest {new} bytes",
    "max_age": "messages older than {new}",
    "max_msgs_per_subject": "messages beyond the newest {new} of each subject",
}


# Settings of a stream that an update can turn on but not off.
_ONE_WAY = ("deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules")


def _losses(change: Change) -> list[str]:
    """Return a sentence for each permanent effect of a changed stream setting."""
    old, new = _limit(change.old), _limit(change.new)
    if change.path in _SHRINKING and new is not None and (old is None or new < old):
        shown = Duration.from_ns(new) if change.path == "max_age" else new
        lost = _SHRINKING[change.path].format(new=shown)
        return [f"Lowering {change.path} removes {lost}."]
    if change.path == "sealed" and change.new:
        return ["Sealing ends all writes and deletions permanently."]
    if change.path in _ONE_WAY and change.new:
        return [f"{change.path} cannot be turned off again."]
    if change.path == "mirror" and change.new is None:
        return ["The stream stops following its origin permanently."]
    if change.path == "retention" and change.new == "interest":
        return ["Messages that every consumer acknowledged are removed."]
    return []


def _interest_lost(
    before: JsonObject, after: JsonObject, stream: Config, version: Version
) -> list[str]:
    """Return a sentence if a changed filter of a consumer removes messages from its stream.

    Only a stream with `interest` retention removes messages in this case.
    """
    parent = stored_stream_members(stream, version)
    wanted = filters_of(before)
    if parent["retention"] != "interest" or covers(filters_of(after), wanted):
        return []
    if wanted == [">"] and covers(filters_of(after), _stored_subjects(parent)):
        return []
    return ["Messages that only the old filter matches are removed, as the retention is interest."]


def _stored_subjects(stream: JsonObject) -> list[str]:
    """Return filters for the subjects of all messages in a stream; `[">"]` if they are unknown."""
    elsewhere = any(stream.get(name) for name in ("mirror", "sources", "subject_transform"))
    return [">"] if elsewhere else list(stream.get("subjects") or [">"])


def _limit(value: Any) -> int | None:
    """Return the value of a limit; None for no limit."""
    return value if isinstance(value, int) and value > 0 else None
