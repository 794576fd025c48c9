"""Rules for a stream's settings, in the order in which the server checks them.

The rules for mirrors, sources and subjects are in separate modules. `STREAM_RULES` contains all
rules.
"""

from __future__ import annotations

from collections.abc import Callable

from twinstream.models.error_codes import (
    PEDANTIC,
    REPLICAS_NEGATIVE,
    STREAM_CREATE,
    STREAM_INVALID_CONFIG,
    STREAM_MISMATCH,
    STREAM_NAME_PATH_SEPARATOR,
)
from twinstream.models.names.subjects import NAME_MAX_BYTES, name_fault
from twinstream.models.rules.rule import Found, Hit, Judge, Rule
from twinstream.models.rules.stored import METADATA_MAX_BYTES, OWN_BYTES, metadata_bytes
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.rules.stream_origin import (
    EXTERNAL_RULES,
    MIRROR_RULES,
    ORIGIN_FILTER_RULES,
    SOURCE_RULES,
)
from twinstream.models.rules.stream_subjects import SUBJECT_RULES
from twinstream.models.version import Version

DESCRIPTION_MAX_BYTES = 4_096
REPLICAS_MAX = 5
MINUTE = 60_000_000_000
SECOND = 1_000_000_000
SHORTEST = 100_000_000
"""The minimum of `max_age` and `duplicate_window`: 100 milliseconds, in nanoseconds."""

SOURCES_WITHOUT_WINDOW_SINCE: Version = (2, 14, 0)
"""The first server version without a default `duplicate_window` for streams with sources."""

SR = Rule[StreamCase]


def _name(case: StreamCase) -> Found:
    fault = name_fault(case["name"])
    return [Hit("name", case["name"] or None, fault)] if fault else False


def _path_separator(case: StreamCase) -> Found:
    return not case.update and ("/" in case["name"] or "\\" in case["name"])


def _metadata_rule(test: Callable[[StreamCase], Found]) -> SR:
    return SR(
        "S-META-LEN",
        STREAM_INVALID_CONFIG,
        "metadata",
        "the metadata is larger than 128 KiB less the server's own 16 bytes.",
        "Shorten keys or values.",
        test,
    )


def _metadata(case: StreamCase) -> Found:
    if case.update:
        return metadata_bytes(case["metadata"], own=True) > METADATA_MAX_BYTES
    return metadata_bytes(case["metadata"]) > METADATA_MAX_BYTES - OWN_BYTES


def _metadata_again(case: StreamCase) -> Found:
    """Whether the metadata of an update is too large for the second check of the server.

    Between the two checks the server adds its own keys.
    """
    late = case.update and not _metadata(case)
    return late and metadata_bytes(case["metadata"]) > METADATA_MAX_BYTES - OWN_BYTES


def _below_minus_one(*members: str) -> SR:
    return SR(
        "S-LIMIT-PED",
        PEDANTIC,
        "",
        "{value} is below -1; the server would make it -1.",
        "Write -1 for no limit.",
        lambda case: [Hit(name, case[name]) for name in members if case[name] < -1],
        since="2.12.0",
        pedantic=True,
    )


def _marker_without_ttl(case: StreamCase) -> Found:
    return bool(case["subject_delete_marker_ttl"] > 0 and not case["allow_msg_ttl"])


def _lowered_window(case: StreamCase) -> Found:
    if case["duplicate_window"] or case.mirror is not None:
        return False
    if case.version < SOURCES_WITHOUT_WINDOW_SINCE:
        return bool(case["max_age"]) and case["max_age"] < 2 * MINUTE
    return not case.sources and 0 < case["max_age"] < 2 * MINUTE


def _window_above_age(*, since: str = "0.0.0", until: str = "999.0.0") -> SR:
    return SR(
        "S-DUP-PED",
        PEDANTIC,
        "duplicate_window",
        "the server would lower the duplicate window to max_age.",
        "Set duplicate_window.",
        _lowered_window,
        since=since,
        until=until,
        pedantic=True,
    )


NAME_RULES = (
    SR(
        "S-NAME-MISSING",
        STREAM_MISMATCH,
        "name",
        "a stream needs a name.",
        "Add name.",
        lambda case: not case["name"] and not case.update,
    ),
    SR(
        "S-PATHSEP",
        STREAM_NAME_PATH_SEPARATOR,
        "name",
        "{value} has a path separator.",
        "Use letters, digits, - and _.",
        _path_separator,
    ),
    SR(
        "S-SEALED-CREATE",
        STREAM_INVALID_CONFIG,
        "sealed",
        "a stream cannot be sealed when it is created.",
        "Seal it by an update later.",
        lambda case: case["sealed"] and not case.update,
    ),
    SR(
        "S-MIRROR-DIRECT",
        STREAM_INVALID_CONFIG,
        "mirror_direct",
        "mirror_direct needs a mirror.",
        "Add mirror or remove mirror_direct.",
        lambda case: case["mirror_direct"] and case.mirror is None and not case.update,
    ),
    SR(
        "S-NAME",
        STREAM_INVALID_CONFIG,
        "name",
        "the name {detail}.",
        "Use letters, digits, - and _.",
        lambda case: (case.update or bool(case["name"])) and _name(case),
    ),
    SR(
        "S-NAME-LEN",
        STREAM_INVALID_CONFIG,
        "name",
        "the name is longer than 255 bytes.",
        "Shorten it.",
        lambda case: len(case["name"].encode()) > NAME_MAX_BYTES,
    ),
)

LIMIT_RULES = (
    SR(
        "S-DESC-LEN",
        STREAM_INVALID_CONFIG,
        "description",
        "the description is longer than 4096 bytes.",
        "Shorten it.",
        lambda case: len(case["description"].encode()) > DESCRIPTION_MAX_BYTES,
    ),
    _metadata_rule(_metadata),
    SR(
        "S-REPL-MAX",
        STREAM_INVALID_CONFIG,
        "num_replicas",
        "{value} replicas are more than 5.",
        "Use 1, 3 or 5.",
        lambda case: case["num_replicas"] > REPLICAS_MAX,
    ),
    SR(
        "S-REPL-NEG",
        REPLICAS_NEGATIVE,
        "num_replicas",
        "the number of replicas is negative.",
        "Use 1, 3 or 5.",
        lambda case: case["num_replicas"] < 0,
    ),
    _below_minus_one(
        "max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size", "max_consumers"
    ),
    _window_above_age(until="2.12.0"),
    SR(
        "S-AGE-NEG",
        STREAM_INVALID_CONFIG,
        "max_age",
        "max_age is negative.",
        "Use 0 for no limit.",
        lambda case: case["max_age"] < 0,
    ),
    SR(
        "S-AGE-MIN",
        STREAM_INVALID_CONFIG,
        "max_age",
        "a max_age of {value} ns is below 100 ms.",
        "Durations are in nanoseconds; 100 ms is 100000000.",
        lambda case: 0 < case["max_age"] < SHORTEST,
    ),
    _window_above_age(since="2.12.0"),
    SR(
        "S-DUP-NEG",
        STREAM_INVALID_CONFIG,
        "duplicate_window",
        "duplicate_window is negative.",
        "Leave it out for the default.",
        lambda case: case["duplicate_window"] < 0,
    ),
    SR(
        "S-DUP-AGE",
        STREAM_INVALID_CONFIG,
        "duplicate_window",
        "duplicate_window is longer than max_age.",
        "Shorten it to max_age or less.",
        lambda case: 0 != case["max_age"] < case["duplicate_window"],
    ),
    SR(
        "S-DUP-MIN",
        STREAM_INVALID_CONFIG,
        "duplicate_window",
        "a duplicate_window of {value} ns is below 100 ms.",
        "Durations are in nanoseconds; 100 ms is 100000000.",
        lambda case: 0 < case["duplicate_window"] < SHORTEST,
    ),
)

FLAG_RULES = (
    SR(
        "S-ROLLUP-PURGE",
        STREAM_INVALID_CONFIG,
        "allow_rollup_hdrs",
        "allow_rollup_hdrs and deny_purge exclude each other.",
        "Remove one of them.",
        lambda case: case["deny_purge"] and case["allow_rollup_hdrs"],
    ),
    SR(
        "S-CTR-DISCARD",
        STREAM_INVALID_CONFIG,
        "discard",
        "a stream of counters cannot discard new messages.",
        "Use discard old.",
        lambda case: case["allow_msg_counter"] and case["discard"] == "new",
        since="2.12.0",
    ),
    SR(
        "S-CTR-TTL",
        STREAM_INVALID_CONFIG,
        "allow_msg_ttl",
        "counters and allow_msg_ttl exclude each other.",
        "Remove one of them.",
        lambda case: case["allow_msg_counter"] and case["allow_msg_ttl"],
        since="2.12.0",
    ),
    SR(
        "S-CTR-SCHED",
        STREAM_INVALID_CONFIG,
        "allow_msg_schedules",
        "counters and schedules exclude each other.",
        "Remove one of them.",
        lambda case: case["allow_msg_counter"] and case["allow_msg_schedules"],
        since="2.12.10 2.14.2",
    ),
    SR(
        "S-CTR-RETENTION",
        STREAM_INVALID_CONFIG,
        "retention",
        "counters need retention limits.",
        "Use retention limits.",
        lambda case: case["allow_msg_counter"] and case["retention"] not in ("", "limits"),
        since="2.12.0",
    ),
    SR(
        "S-DNPS-DISCARD",
        STREAM_INVALID_CONFIG,
        "discard_new_per_subject",
        "discard_new_per_subject needs discard new.",
        "Set discard to new.",
        lambda case: case["discard_new_per_subject"] and case["discard"] != "new",
    ),
    SR(
        "S-DNPS-MAX",
        STREAM_INVALID_CONFIG,
        "discard_new_per_subject",
        "discard_new_per_subject needs max_msgs_per_subject above 0.",
        "Set max_msgs_per_subject.",
        lambda case: case["discard_new_per_subject"] and case["max_msgs_per_subject"] <= 0,
    ),
    SR(
        "S-SDM-MIN",
        STREAM_INVALID_CONFIG,
        "subject_delete_marker_ttl",
        "a subject_delete_marker_ttl of {value} ns is below one second.",
        "Durations are in nanoseconds; one second is 1000000000.",
        lambda case: 0 < case["subject_delete_marker_ttl"] < SECOND,
    ),
    SR(
        "S-SDM-NEG",
        STREAM_INVALID_CONFIG,
        "subject_delete_marker_ttl",
        "subject_delete_marker_ttl is negative.",
        "Use 0 for no marker.",
        lambda case: case["subject_delete_marker_ttl"] < 0,
    ),
    SR(
        "S-SDM-TTL",
        STREAM_INVALID_CONFIG,
        "allow_msg_ttl",
        "subject_delete_marker_ttl needs allow_msg_ttl.",
        "Set allow_msg_ttl.",
        _marker_without_ttl,
        until="2.11.2",
    ),
    SR(
        "S-SDM-TTL-PED",
        STREAM_INVALID_CONFIG,
        "allow_msg_ttl",
        "subject_delete_marker_ttl needs allow_msg_ttl; the server would turn it on.",
        "Set allow_msg_ttl.",
        _marker_without_ttl,
        since="2.11.2",
        pedantic=True,
    ),
    SR(
        "S-SDM-ROLLUP-PED",
        STREAM_INVALID_CONFIG,
        "allow_rollup_hdrs",
        "subject_delete_marker_ttl needs allow_rollup_hdrs; the server would turn it on.",
        "Set allow_rollup_hdrs.",
        lambda case: case["subject_delete_marker_ttl"] > 0 and not case["allow_rollup_hdrs"],
        since="2.11.2",
        pedantic=True,
    ),
    SR(
        "S-SCHED-DISCARD",
        STREAM_INVALID_CONFIG,
        "discard",
        "a stream with schedules cannot discard new messages.",
        "Use discard old.",
        lambda case: case["allow_msg_schedules"] and case["discard"] == "new",
        since="2.12.10 2.14.2",
    ),
    SR(
        "S-SCHED-ROLLUP-PED",
        STREAM_INVALID_CONFIG,
        "allow_rollup_hdrs",
        "schedules need allow_rollup_hdrs; the server would turn it on.",
        "Set allow_rollup_hdrs.",
        lambda case: (
            case["allow_msg_schedules"]
            and not case["allow_rollup_hdrs"]
            and case["subject_delete_marker_ttl"] <= 0
        ),
        since="2.12.0",
        pedantic=True,
    ),
    SR(
        "S-ASYNC-STORAGE",
        STREAM_INVALID_CONFIG,
        "persist_mode",
        "persist_mode async needs file storage.",
        "Use storage file or remove persist_mode.",
        lambda case: _is_async(case) and case["storage"] == "memory",
        since="2.12.0",
    ),
    SR(
        "S-ASYNC-REPL",
        STREAM_INVALID_CONFIG,
        "persist_mode",
        "persist_mode async needs one replica.",
        "Use num_replicas 1 or remove persist_mode.",
        lambda case: _is_async(case) and case["num_replicas"] > 1,
        since="2.12.0",
    ),
    SR(
        "S-ASYNC-ATOMIC",
        STREAM_INVALID_CONFIG,
        "persist_mode",
        "persist_mode async and allow_atomic exclude each other.",
        "Remove one of them.",
        lambda case: _is_async(case) and case["allow_atomic"],
        since="2.12.0",
    ),
)


def _is_async(case: StreamCase) -> bool:
    return bool(case["persist_mode"] == "async")


PLACEMENT_RULES = (
    SR(
        "S-PLACE-PREFERRED",
        STREAM_INVALID_CONFIG,
        "placement.preferred",
        "a preferred server is only valid in a request to a leader to step down.",
        "Remove preferred.",
        lambda case: (
            [Hit("placement.preferred", case["placement"]["preferred"])]
            if case["placement"] and case["placement"]["preferred"]
            else False
        ),
    ),
)

STREAM_RULES: tuple[Judge[StreamCase], ...] = (
    *NAME_RULES,
    *LIMIT_RULES,
    *FLAG_RULES,
    *MIRROR_RULES,
    *SOURCE_RULES,
    *EXTERNAL_RULES,
    *SUBJECT_RULES,
    *PLACEMENT_RULES,
    *ORIGIN_FILTER_RULES,
    _metadata_rule(_metadata_again),
    SR(
        "S-NAME-FOLDER",
        STREAM_CREATE,
        "name",
        "the name has a NUL character, which the name of a folder cannot have.",
        "Use letters, digits, - and _.",
        lambda case: "\0" in case["name"] and case["storage"] != "memory" and not case.update,
    ),
)
"""All rules that depend only on the settings."""
