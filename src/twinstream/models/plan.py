"""Plans: create, update (with the settings), do nothing, or the reasons why it is impossible.

Configs are compared as the server stores them, so that explicit defaults, durations that the server
fills in and its own metadata make no difference.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

from attrs import Factory, frozen

from twinstream.models._filters import covers, filters_of
from twinstream.models._go_time import go_time
from twinstream.models._json import JsonObject
from twinstream.models._mirror_start import keep_start
from twinstream.models.duration import Duration
from twinstream.models.effective import stored_consumer_members, stored_stream_members
from twinstream.models.error_codes import INVALID_JSON
from twinstream.models.problem import Problem
from twinstream.models.rules.stream_stored import SEALED
from twinstream.models.updates import validate_consumer_update, validate_stream_update
from twinstream.models.validation import Config, validate_consumer, validate_stream
from twinstream.models.version import Version, parse_version

Action: TypeAlias = Literal["create", "nothing", "update", "impossible"]


@frozen
class Change:
    """A setting that would change."""

    path: str
    """The name of the setting."""

    old: object
    """The current value, None if it is not set."""

    new: object
    """The new value, None if it would not be set."""


@frozen
class Plan:
    """The actions required to reach a config."""

    action: Action
    """`create`, `nothing`, `update` or `impossible`."""

    changes: list[Change] = Factory(list[Change])
    """The settings that would change, sorted by name."""

    problems: list[Problem] = Factory(list[Problem])
    """Why the change is impossible, and problems that only the server can decide."""

    losses: list[str] = Factory(list[str])
    """What the change removes or ends permanently, one sentence each."""


def plan_stream(old: Config | None, new: Config, server: str | None = None) -> Plan:
    """Return the plan to give the stream the config `new`.

    A mirror's `mirror_direct` follows its origin, whatever the config says, so it is not compared.
    Neither is its `duplicate_window`, which clusters remove and which has no effect without
    publishers. Times are compared independently of their zones. An update has to write the start of
    a mirror as the server returns it.

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
    """Return the plan to give the consumer the config `new`.

    An update does not change `pause_until`, so it is not compared.

    Args:
        old: The config on the server, None if the consumer does not exist.
        new: The intended config.
        stream: The config of its stream; without it, rules that need it are skipped.
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
        # A consumer with a copy starts at the position of the copy.
        ignored |= {"deliver_policy", "opt_start_seq", "opt_start_time"}
    for members in (before, after):
        for name in ignored:
            members.pop(name, None)
        if members.get("max_ack_pending", 0) < 0:
            # A value from a stream's consumer_limits is stored as it is, but becomes -1 when sent.
            members["max_ack_pending"] = -1
    losses = [] if stream is None else _interest_lost(before, after, stream, version)
    return _change(_changes(before, after), problems, losses)


def _change(changes: list[Change], problems: list[Problem], losses: list[str]) -> Plan:
    """Return the plan for an existing stream or consumer.

    A server may refuse the very config that it has; in that case no update is needed.
    """
    if not changes:
        return Plan("nothing")
    if _errors(problems):
        return Plan("impossible", problems=problems)
    return Plan("update", changes, problems, losses)


def _everywhere(republish: JsonObject) -> JsonObject:
    """Return a republish setting as stored by an update: empty values become `>`.

    A creation keeps an empty destination, and an empty source if it belongs to a transform without
    destination, which has the same effect.
    """
    return {**republish, "src": republish.get("src") or ">", "dest": republish["dest"] or ">"}


def _unreadable(problems: list[Problem]) -> bool:
    """Whether settings could not be read, so that nothing can be compared."""
    return any(problem.err_code == INVALID_JSON for problem in problems)


def _creation(problems: list[Problem]) -> Plan:
    return Plan("impossible" if _errors(problems) else "create", problems=problems)


def _errors(problems: list[Problem]) -> bool:
    return any(not problem.needs_server for problem in problems)


def _changes(before: JsonObject, after: JsonObject) -> list[Change]:
    """Compare two stored configs: metadata key by key, without the server's own."""
    old, new = _flat(before), _flat(after)
    return [
        Change(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if _moments(old.get(path), path) != _moments(new.get(path), path)
    ]


def _moments(value: Any, name: str) -> Any:
    """Return a setting with its times converted to numbers, which do not depend on zones."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return {name: _moments(each, name) for name, each in members.items()}
    if isinstance(value, list):
        return [_moments(each, name) for each in cast("list[object]", value)]
    return go_time(value) if isinstance(value, str) and name.endswith("_time") else value


def _flat(members: JsonObject) -> JsonObject:
    # An empty object is equivalent to its absence; servers keep some and drop others.
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


_ONE_WAY = ("deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules")
"""Settings that cannot be turned off on a server."""


def _losses(change: Change) -> list[str]:
    """Describe what a change of a stream removes or ends permanently."""
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
    """Describe what a stream with interest retention removes if a consumer's filter changes."""
    parent = stored_stream_members(stream, version)
    wanted = filters_of(before)
    if parent["retention"] != "interest" or covers(filters_of(after), wanted):
        return []
    if wanted == [">"] and covers(filters_of(after), _stored_subjects(parent)):
        return []
    return ["Messages that only the old filter matches are removed, as the retention is interest."]


def _stored_subjects(stream: JsonObject) -> list[str]:
    """Return subjects that contain those of all messages of a stream."""
    elsewhere = any(stream.get(name) for name in ("mirror", "sources", "subject_transform"))
    return [">"] if elsewhere else list(stream.get("subjects") or [">"])


def _limit(value: Any) -> int | None:
    """Return a limit, or None for no limit."""
    return value if isinstance(value, int) and value > 0 else None
