"""Rules for warnings about valid but rarely intended settings of a stream."""

from __future__ import annotations

from collections.abc import Iterator

from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import can_meet
from twinstream.models.names.transform_rules import token_function
from twinstream.models.numbers import HIDDEN_FROM
from twinstream.models.rules.rule import Found, Hit, Rule
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.times.go_time import has_zero_offset

LARGE_WINDOW = 15 * 60 * 1_000_000_000
"""The longest `duplicate_window` without a warning: 15 minutes, in nanoseconds.

The server keeps the ids of all messages in the window in memory.
"""

SHORTEST_TTL = 1_000_000_000
"""The minimum TTL of a message: one second, in nanoseconds."""


def _destinations(case: StreamCase) -> Iterator[tuple[str, str]]:
    """Yield the path and the destination of each transform of a stream."""
    for name in ("subject_transform", "republish"):
        if case[name] is not None:
            yield f"{name}.dest", case[name]["dest"]
    origins = [(f"sources[{index}]", source) for index, source in enumerate(case.sources)]
    if case.mirror is not None:
        origins.append(("mirror", case.mirror))
    for path, origin in origins:
        for index, transform in enumerate(origin["subject_transforms"]):
            yield f"{path}.subject_transforms[{index}].dest", transform["dest"]


def _without_partitions(case: StreamCase) -> Iterator[Hit]:
    for path, destination in _destinations(case):
        functions = (token_function(token, case.version) for token in destination.split("."))
        # The server uses the low 32 bits of the number.
        if any(one and one.name == "partition" and not one.number % 2**32 for one in functions):
            yield Hit(path, destination)


def _captures_own_name(case: StreamCase) -> bool:
    return not case["subjects"] and case.mirror is None and not case.sources


def _outside(case: StreamCase, member: str, captured: list[str] | None) -> Found:
    """Whether the source of a transform or of `republish` overlaps none of `captured`."""
    change = case[member]
    if change is None or not change["src"] or captured is None:
        return False
    met = first_related([change["src"]], captured, can_meet)
    return not met and [Hit(f"{member}.src", change["src"])]


def _transform_outside(case: StreamCase) -> Found:
    copies = case.mirror is not None or bool(case.sources)
    return not copies and _outside(case, "subject_transform", case.subjects)


def mirror_zone(case: StreamCase) -> Found:
    """Whether the start time of a mirror ends in a zero offset instead of Z."""
    start = None if case.mirror is None else case.mirror["opt_start_time"]
    return has_zero_offset(start) and [Hit("mirror.opt_start_time", start)]


SL = Rule[StreamCase]

STREAM_LINT = (
    SL(
        "L-NO-SUBJECTS",
        0,
        "subjects",
        "without subjects the stream captures only the subject that is equal to its name.",
        "Write subjects, even if this is intended.",
        _captures_own_name,
    ),
    SL(
        "L-TRANSFORM-OUTSIDE",
        0,
        "",
        "the stream captures nothing on {value}, so the transform has no effect.",
        "Compare with the stream's subjects.",
        _transform_outside,
    ),
    SL(
        "L-REPUBLISH-OUTSIDE",
        0,
        "",
        "the stream stores nothing on {value}, so republish has no effect.",
        "Compare with the stream's subjects, and with its subject_transform.",
        lambda case: _outside(case, "republish", case.kept_subjects),
    ),
    SL(
        "L-SEQ-HIDDEN",
        0,
        "first_seq",
        "servers acknowledge messages from sequence 2^62 on in files, and never return them.",
        "Begin lower, or use storage memory.",
        lambda case: case["first_seq"] >= HIDDEN_FROM and case["storage"] != "memory",
    ),
    SL(
        "L-TTL-RAISED",
        0,
        "subject_delete_marker_ttl",
        "the server silently raises a message's ttl that is below subject_delete_marker_ttl.",
        "Publish with a longer ttl, or set a shorter subject_delete_marker_ttl.",
        lambda case: case["subject_delete_marker_ttl"] > SHORTEST_TTL,
    ),
    SL(
        "L-NO-LIMIT",
        0,
        "max_bytes",
        "nothing limits the stream, so that it grows until the disk is full.",
        "Set max_bytes, max_age or max_msgs.",
        lambda case: (
            case["retention"] in ("", "limits")
            and not any(
                case[member] > 0
                for member in ("max_bytes", "max_age", "max_msgs", "max_msgs_per_subject")
            )
        ),
    ),
    SL(
        "L-WINDOW-LARGE",
        0,
        "duplicate_window",
        "message ids are kept in memory for the whole duplicate_window.",
        "For long protection use max_msgs_per_subject 1 with discard_new_per_subject.",
        lambda case: case["duplicate_window"] > LARGE_WINDOW,
    ),
    SL(
        "L-INSERT-MARKER",
        0,
        "subject_delete_marker_ttl",
        "a delete marker occupies the subject, so inserts are refused until it is removed.",
        "Use allow_msg_ttl without a marker.",
        lambda case: case["discard_new_per_subject"] and case["subject_delete_marker_ttl"] > 0,
    ),
    SL(
        "L-TTL-SILENT",
        0,
        "subject_delete_marker_ttl",
        "the marker turns on allow_msg_ttl and allow_rollup_hdrs and turns off deny_purge.",
        "Write these settings, or the server refuses an update without the marker.",
        lambda case: (
            case["subject_delete_marker_ttl"] > 0
            and not (case["allow_msg_ttl"] and case["allow_rollup_hdrs"])
        ),
    ),
    SL(
        "L-PURGE-SILENT",
        0,
        "deny_purge",
        "schedules and markers turn deny_purge off.",
        "Remove deny_purge, it has no effect.",
        lambda case: (
            case["deny_purge"]
            and (case["allow_msg_schedules"] or case["subject_delete_marker_ttl"] > 0)
        ),
    ),
    SL(
        "L-NEGATIVE",
        0,
        "max_msgs",
        "{value} means no limit.",
        "Write -1.",
        lambda case: case["max_msgs"] < -1,
    ),
    SL(
        "L-NO-ACK",
        0,
        "no_ack",
        "publishers get no error for messages that the stream refuses.",
        "Remove no_ack unless the subjects need it.",
        lambda case: (
            case["no_ack"] and not any(one.startswith((">", "$", "*")) for one in case.subjects)
        ),
    ),
    SL(
        "L-MEMORY-REPLICA",
        0,
        "storage",
        "a memory stream with one replica is lost with its server.",
        "Use storage file, or three replicas.",
        lambda case: case["storage"] == "memory" and case["num_replicas"] < 2,
    ),
    SL(
        "L-NO-PARTITION",
        0,
        "subject_transform.dest",
        "the number of partitions is 0; the first message crashes a server of version 2.11.",
        "Pass at least 1 to partition.",
        _without_partitions,
    ),
    SL(
        "L-MIRROR-ZONE",
        0,
        "mirror.opt_start_time",
        "after a restart the server has stored Z instead, and refuses all updates with {value}.",
        "Write Z.",
        mirror_zone,
    ),
)
