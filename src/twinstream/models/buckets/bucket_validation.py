"""Validate bucket configs.

A bucket's config is validated as the config of its stream. The problems are then changed so that
they name the settings of the bucket. Source: ADR-8, ADR-20, ADR-57.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from attrs import evolve, frozen

from twinstream.models.buckets.streams import key_value_stream, object_store_stream
from twinstream.models.codec.codec import decode, encode
from twinstream.models.codec.decode_error import DecodeError
from twinstream.models.codec.json_object import JsonObject
from twinstream.models.files.document import member
from twinstream.models.files.reading import Reader
from twinstream.models.files.shapes import SHAPES
from twinstream.models.generated.config.stream import (
    KeyValueConfig,
    ObjectStoreConfig,
    StreamConfig,
)
from twinstream.models.lint import lint_stream
from twinstream.models.names.near_names import near_name
from twinstream.models.plan import Change, Plan
from twinstream.models.problem import Problem
from twinstream.models.validation import validate_stream
from twinstream.models.version import parse_version

BucketKind: TypeAlias = Literal["key_value", "object_store"]

_RECORDS: Final[dict[BucketKind, str]] = {
    "key_value": "KeyValueConfig",
    "object_store": "ObjectStoreConfig",
}

# Maximum length of a bucket's name. The name of its stream has the prefix `KV_` and at most 255
# bytes. For object stores, the limit of the clients applies instead.
_LONGEST: Final[dict[BucketKind, int]] = {"key_value": 252, "object_store": 200}
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_MOST_HISTORY: Final = 64

# A map from stream settings to the bucket settings with the same meaning but another name.
_RENAMED: Final = {
    "name": "bucket",
    "max_msgs_per_subject": "history",
    "max_age": "ttl",
    "max_msg_size": "max_value_size",
    "subject_delete_marker_ttl": "limit_marker_ttl",
}

# A map from stream settings to the bucket settings that determine their values.
_CAUSES: Final = {
    "subjects": "bucket",
    "duplicate_window": "ttl",
    "allow_msg_ttl": "limit_marker_ttl",
}

# Stream settings that a bucket determines even if it has no setting of the same name.
_ALSO_DECIDED: Final = frozenset({"subjects", "mirror", "mirror_direct", "sources"})

_IN_TEXT: Final = re.compile(
    r"\b(?:max_msgs_per_subject|max_age|max_msg_size|subject_delete_marker_ttl)\b"
)
_FIRST_NAME: Final = re.compile(r"[^.\[]*")
_TRANSFORM: Final = re.compile(r"(sources\[(\d+)\])\.subject_transforms\b")
# Rules whose warnings are suppressed for buckets, because most buckets have no limits.
_OF_STREAMS: Final = frozenset({"L-NO-LIMIT"})


def stream_members(kind: BucketKind, members: Mapping[str, Any]) -> JsonObject:
    """Return the config of the stream that stores a bucket; empty if the bucket's name is invalid.

    Invalid settings are omitted; `bucket_problems` reports them.
    """
    return _Bucket.read(kind, members).stream


def bucket_problems(
    kind: BucketKind, members: Mapping[str, Any], server: str | None, *, pedantic: bool = False
) -> tuple[list[Problem], list[Problem]]:
    """Return the problems and the warnings of a bucket's config.

    Paths and texts name the settings of the bucket, not those of its stream.
    """
    bucket = _Bucket.read(kind, members, server)
    if not bucket.stream:
        return bucket.problems, []
    found = [
        one
        for one in validate_stream(bucket.stream, server, pedantic=pedantic)
        if one.path != "duplicate_window"  # the server chooses a valid window for a valid ttl
    ]
    oddities = [one for one in lint_stream(bucket.stream, server) if one.rule not in _OF_STREAMS]
    problems = [bucket_problem(kind, members, one) for one in found]
    return [*bucket.problems, *problems], [bucket_problem(kind, members, one) for one in oddities]


def bucket_problem(kind: BucketKind, members: Mapping[str, Any], problem: Problem) -> Problem:
    """Convert a problem of the stream's config to a problem of the bucket's config."""
    path = _path(kind, members, problem.path)
    value = members.get("bucket") if path == "bucket" else problem.value
    return evolve(
        problem,
        path=path,
        value=value,
        message=_reworded(problem.message),
        hint=_reworded(problem.hint),
    )


def bucket_plan(kind: BucketKind, members: Mapping[str, Any], plan: Plan) -> Plan:
    """Convert a plan for the stream to a plan with the paths and texts of the bucket."""
    return Plan(
        plan.action,
        sorted((_change(kind, one) for one in plan.changes), key=lambda change: change.path),
        [bucket_problem(kind, members, one) for one in plan.problems],
        [_reworded(loss) for loss in plan.losses],
    )


def kept_members(kind: BucketKind, old: StreamConfig, new: JsonObject) -> JsonObject:
    """Return the config `new` plus the settings of `old` that a bucket does not determine.

    An update replaces the whole config of the stream, so it must repeat these settings.
    """
    streams = {ours: theirs for theirs, ours in _RENAMED.items()}
    decided = {streams.get(name, name) for name in SHAPES[_RECORDS[kind]]} | _ALSO_DECIDED
    kept = {name: value for name, value in encode(old).items() if name not in decided}
    window, age = kept.get("duplicate_window"), new.get("max_age")
    if window and age and window > age:  # without a window, the server chooses a valid one
        del kept["duplicate_window"]
    return {**kept, **new}


@frozen
class _Bucket:
    """The stream config for the valid settings of a bucket, and problems of its other settings.

    The stream config is empty if the bucket has no valid name, or if decoding fails.
    """

    stream: JsonObject
    problems: list[Problem]

    @classmethod
    def read(
        cls, kind: BucketKind, members: Mapping[str, Any], server: str | None = None
    ) -> _Bucket:
        """Return the stream's config for a bucket, and the problems of the bucket's settings.

        Settings with problems are omitted. Without a valid name, the config is empty.
        """
        shape = SHAPES[_RECORDS[kind]]
        known = {
            name: value for name, value in members.items() if name in shape and value is not None
        }
        reader = Reader(parse_version(server))
        reader.record(known, _RECORDS[kind])
        problems = [_unknown(str(name), members, shape) for name in members if name not in shape]
        problems += [evolve(one, err_code=0) for one in reader.problems]
        valid = _without(known, problems)
        if "bucket" not in known:
            message = "the bucket has no name."
            problems.append(Problem("bucket", None, "B-NAME-MISSING", message, "Set bucket."))
        problems += _broken_rules(kind, valid)
        valid = _without(valid, problems)
        if "bucket" not in valid:
            return cls({}, problems)
        try:
            stream = _stream(kind, valid)
        except DecodeError as error:
            problems += [Problem(path, None, "R-JSON", f"{why}.") for path, why in error.problems]
            return cls({}, problems)
        return cls(encode(stream), problems)


def _stream(kind: BucketKind, members: JsonObject) -> StreamConfig:
    if kind == "key_value":
        return key_value_stream(decode(members, KeyValueConfig))
    return object_store_stream(decode(members, ObjectStoreConfig))


def _without(members: JsonObject, problems: list[Problem]) -> JsonObject:
    bad = {_first_name(one.path) for one in problems}
    return {name: value for name, value in members.items() if name not in bad}


def _first_name(path: str) -> str:
    found = _FIRST_NAME.match(path)
    return found[0] if found else ""


def _unknown(name: str, members: Mapping[str, Any], shape: Mapping[str, object]) -> Problem:
    near = near_name(name, shape)
    hint = f"Did you mean {near!r}?" if near else "Remove it."
    return Problem(name, members.get(name), "R-UNKNOWN", "there is no such setting.", hint)


def _broken_rules(kind: BucketKind, members: JsonObject) -> Iterator[Problem]:
    """Yield the violated rules that apply to buckets but not to streams."""
    name, longest = members.get("bucket", "B"), _LONGEST[kind]
    if not _NAME.fullmatch(name):
        message = "the name of a bucket has only the characters A-Z a-z 0-9 _ and -."
        yield Problem("bucket", name, "B-NAME", message, "Choose another name.")
    elif len(name) > longest:
        message = f"the name of the bucket is longer than {longest} characters."
        yield Problem("bucket", name, "B-NAME-LEN", message, "Shorten it.")
    history = members.get("history")
    if history is not None and not 1 <= history <= _MOST_HISTORY:
        message = f"history must be from 1 to {_MOST_HISTORY}."
        hint = "Set 1, the default, to keep only the latest value of each key."
        yield Problem("history", history, "B-HISTORY", message, hint)
    if members.get("mirror") is not None and members.get("sources"):
        message = "a bucket is a mirror or has sources, not both."
        yield Problem("sources", None, "B-MIRROR-SOURCES", message, "Remove one of them.")
    for path, origin in _origins(members):
        if not origin.get("name"):
            message = "the name of the origin is missing."
            hint = "Set the name of its bucket."
            yield Problem(member(path, "name"), None, "B-ORIGIN-NAME", message, hint)


def _origins(members: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    mirror = members.get("mirror")
    if isinstance(mirror, dict):
        yield "mirror", cast("JsonObject", mirror)
    for index, source in enumerate(members.get("sources") or ()):
        # The server reads null in the list as a source without a name.
        yield f"sources[{index}]", cast("JsonObject", source or {})


def _path(kind: BucketKind, members: Mapping[str, Any], path: str) -> str:
    """Return the path in the bucket's config for a path in the config of its stream."""
    first = _first_name(path)
    made = _TRANSFORM.match(path)
    if made:
        source = members["sources"][int(made[2])]
        # `key_value_stream` adds a transform to a source without transforms.
        if not source.get("subject_transforms"):
            return f"{made[1]}.filter_subject" if source.get("filter_subject") else made[1]
    if first in _CAUSES:
        cause = _CAUSES[first]
        return cause if cause in SHAPES[_RECORDS[kind]] else "bucket"
    if first in _RENAMED and _RENAMED[first] in SHAPES[_RECORDS[kind]]:
        return _RENAMED[first] + path[len(first) :]
    return path


def _reworded(text: str) -> str:
    """Return `text` with the names of stream settings replaced by those of the bucket."""
    return _IN_TEXT.sub(lambda found: _RENAMED[found[0]], text)


def _change(kind: BucketKind, change: Change) -> Change:
    if change.path == "compression":
        is_on = [value not in (None, "none") for value in (change.old, change.new)]
        return Change("compression", *is_on)
    usual = _RENAMED.get(change.path, "")
    return evolve(change, path=usual) if usual in SHAPES[_RECORDS[kind]] else change
