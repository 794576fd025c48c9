"""Rules for a consumer's settings, in the order of the server.

The rules for delivery, filters and priority groups are in separate modules. `CONSUMER_RULES`
contains all rules.
"""

from __future__ import annotations

from collections.abc import Callable

from twinstream.models.error_codes import (
    ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL,
    ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING,
    ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT,
    ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER,
    ACK_FLOW_CONTROL_REQUIRES_PUSH,
    ACK_WAIT_NEGATIVE,
    BACKOFF_EXCEEDS_MAX_DELIVER,
    BACKOFF_NEGATIVE,
    CONSUMER_CREATE,
    CONSUMER_DESCRIPTION_TOO_LONG,
    CONSUMER_NAME_INVALID,
    CONSUMER_NAME_PATH_SEPARATOR,
    CONSUMER_NAME_TOO_LONG,
    CONSUMER_REPLICAS_EXCEED_STREAM,
    CONSUMER_REPLICAS_MUST_MATCH,
    DURABLE_NAME_MISMATCH,
    FILTER_SUBJECT_MISMATCH,
    METADATA_TOO_LARGE,
    PEDANTIC,
    REPLICAS_NEGATIVE,
    STREAM_INVALID_CONFIG,
    WORKQUEUE_REQUIRES_DELIVER_ALL,
    WORKQUEUE_REQUIRES_EXPLICIT_ACK,
)
from twinstream.models.names.subjects import NAME_MAX_BYTES, name_fault
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.consumer_defaults import ACK_WAIT, NEVER_NEGATIVE
from twinstream.models.rules.consumer_filters import FILTER_RULES
from twinstream.models.rules.consumer_priority import PRIORITY_RULES
from twinstream.models.rules.consumer_push_pull import DELIVERY_RULES
from twinstream.models.rules.rule import Found, Hit, Rule
from twinstream.models.rules.stored import METADATA_MAX_BYTES, OWN_BYTES, metadata_bytes

DESCRIPTION_MAX_BYTES = 4_096
SECOND = 1_000_000_000

CR = Rule[ConsumerCase]


def _dotted(case: ConsumerCase) -> Found:
    return "." in case.given["name"] and case.given["name"] != case.given["durable_name"]


def _path_separator(case: ConsumerCase) -> Found:
    member = "name" if case.given["name"] else "durable_name"
    # The server checks the name in the subject of the request, where a dot ends the name.
    sent = case.given[member].partition(".")[0]
    return ("/" in sent or "\\" in sent) and [Hit(member, case.given[member])]


def _name(case: ConsumerCase) -> Found:
    hits: list[Hit] = []
    for member in ("name", "durable_name"):
        name = case.given[member]
        fault = name_fault(name) if name else None
        if fault and "." not in name:
            hits.append(Hit(member, name, fault))
    return hits


def _negative(case: ConsumerCase) -> Found:
    return [Hit(name, case.given[name]) for name in NEVER_NEGATIVE if case.given[name] < 0]


def _ack_wait_replaced(case: ConsumerCase) -> Found:
    backoff = case.given["backoff"]
    wait = case.given["ack_wait"]
    if not wait and case.given["ack_policy"] in ("explicit", "all"):
        wait = ACK_WAIT
    return bool(backoff) and backoff[0] != wait


def _stream_limit(member: str) -> CR:
    return CR(
        f"C-{member.split('_')[0].upper()}-LIMIT-PED",
        PEDANTIC,
        member,
        f"the stream's consumer_limits would set {member}.",
        f"Set {member}.",
        lambda case: not case.given[member] and case.stream_limits[member] > 0,
        pedantic=True,
    )


def _name_dot(code: int, member: str, test: Callable[[ConsumerCase], Found]) -> CR:
    return CR(
        "R-NAME-DOT",
        code,
        member,
        "{value} has a dot, after which the request's subject continues with a filter.",
        "Use letters, digits, - and _.",
        test,
    )


REQUEST_RULES = (
    CR(
        "R-CONSUMER-PATHSEP",
        CONSUMER_NAME_PATH_SEPARATOR,
        "name",
        "{value} has a path separator.",
        "Use letters, digits, - and _.",
        _path_separator,
    ),
    # A dot in `durable_name` ends the name in the subject of the request early. So the name in the
    # subject differs from the name in the body.
    _name_dot(
        DURABLE_NAME_MISMATCH, "durable_name", lambda case: "." in case.given["durable_name"]
    ),
    CR(
        "R-DURABLE-SUBJECT",
        DURABLE_NAME_MISMATCH,
        "durable_name",
        "name and durable_name differ.",
        "Remove one of them.",
        lambda case: (
            bool(case.given["name"])
            and bool(case.given["durable_name"])
            and case.given["name"] != case.given["durable_name"]
        ),
    ),
    _name_dot(FILTER_SUBJECT_MISMATCH, "name", _dotted),
)

DEFAULT_RULES = (
    CR(
        "C-MAXDELIVER-PED",
        PEDANTIC,
        "max_deliver",
        "max_deliver is below -1; the server would make it -1.",
        "Write -1 for no limit.",
        lambda case: case.given["max_deliver"] < -1,
        since="2.12.0",
        pedantic=True,
    ),
    CR(
        "C-NEGATIVE-PED",
        PEDANTIC,
        "",
        "{value} is negative; the server would make it 0.",
        "Leave it out.",
        _negative,
        since="2.12.0",
        pedantic=True,
    ),
    CR(
        "C-MAXACK-PED",
        PEDANTIC,
        "max_ack_pending",
        "max_ack_pending is below -1; the server would make it -1.",
        "Write -1 for no limit.",
        lambda case: case.given["max_ack_pending"] < -1,
        since="2.12.0",
        pedantic=True,
    ),
    CR(
        "C-BACKOFF-PED",
        PEDANTIC,
        "ack_wait",
        "the first backoff would replace ack_wait.",
        "Set ack_wait to the first backoff.",
        _ack_wait_replaced,
        pedantic=True,
    ),
    _stream_limit("max_ack_pending"),
    _stream_limit("inactive_threshold"),
)

ACK_RULES = (
    CR(
        "C-NAME",
        STREAM_INVALID_CONFIG,
        "",
        "the name {detail}.",
        "Use letters, digits, - and _.",
        _name,
        since="2.12.8",
    ),
    CR(
        "C-REPL-NEG",
        REPLICAS_NEGATIVE,
        "num_replicas",
        "the number of replicas is negative.",
        "Leave num_replicas out to follow the stream.",
        lambda case: case["num_replicas"] < 0,
    ),
    CR(
        "C-REPL-EXCEEDS",
        CONSUMER_REPLICAS_EXCEED_STREAM,
        "num_replicas",
        "{value} replicas are more than the stream has.",
        "Leave num_replicas out to follow the stream.",
        lambda case: (
            case.stream is not None and case["num_replicas"] > max(1, case.stream["num_replicas"])
        ),
    ),
    CR(
        "C-REPL-MATCH",
        CONSUMER_REPLICAS_MUST_MATCH,
        "num_replicas",
        "a consumer of an interest or workqueue stream must have as many replicas as the stream.",
        "Leave num_replicas out to follow the stream.",
        lambda case: (
            case.stream is not None
            and case.retention in ("interest", "workqueue")
            and case["num_replicas"] not in (0, max(1, case.stream["num_replicas"]))
        ),
    ),
    CR(
        "C-BACKOFF-NEG",
        BACKOFF_NEGATIVE,
        "",
        "a backoff of {value} ns is negative.",
        "Use durations of 0 or more.",
        lambda case: [
            Hit(f"backoff[{index}]", wait) for index, wait in enumerate(case["backoff"]) if wait < 0
        ],
        since="2.12.0",
    ),
    CR(
        "C-ACKWAIT-NEG",
        ACK_WAIT_NEGATIVE,
        "ack_wait",
        "ack_wait is negative.",
        "Leave it out for 30 seconds.",
        lambda case: case["ack_wait"] < 0,
        since="2.12.0",
    ),
    CR(
        "C-FC-PUSH",
        ACK_FLOW_CONTROL_REQUIRES_PUSH,
        "ack_policy",
        "ack policy flow_control needs a deliver_subject.",
        "It is meant for prepared sources; use explicit otherwise.",
        lambda case: _by_flow(case) and not case.is_push,
        since="2.14.0",
    ),
    CR(
        "C-FC-FLOW",
        ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL,
        "flow_control",
        "ack policy flow_control needs flow_control.",
        "Set flow_control.",
        lambda case: _by_flow(case) and not case["flow_control"],
        since="2.14.0",
    ),
    CR(
        "C-FC-HEARTBEAT",
        STREAM_INVALID_CONFIG,
        "idle_heartbeat",
        "ack policy flow_control needs a heartbeat of one second.",
        "Set idle_heartbeat to 1000000000.",
        lambda case: _by_flow(case) and case["idle_heartbeat"] != SECOND,
        since="2.14.0",
    ),
    CR(
        "C-FC-MAXACK",
        ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING,
        "max_ack_pending",
        "ack policy flow_control needs max_ack_pending.",
        "Set it above 0.",
        lambda case: _by_flow(case) and case["max_ack_pending"] <= 0,
        since="2.14.0",
    ),
    CR(
        "C-FC-ACKWAIT",
        ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT,
        "ack_wait",
        "ack policy flow_control excludes ack_wait and backoff.",
        "Remove them.",
        lambda case: _by_flow(case) and (bool(case["ack_wait"]) or bool(case["backoff"])),
        since="2.14.0",
    ),
    CR(
        "C-FC-MAXDELIVER",
        ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER,
        "max_deliver",
        "ack policy flow_control excludes max_deliver.",
        "Remove it.",
        lambda case: _by_flow(case) and case["max_deliver"] > 0,
        since="2.14.0",
    ),
    CR(
        "C-BACKOFF-MAXDELIVER",
        BACKOFF_EXCEEDS_MAX_DELIVER,
        "backoff",
        "there are more backoff values than deliveries.",
        "Raise max_deliver to their number, or remove some.",
        lambda case: bool(case["backoff"]) and -1 != case["max_deliver"] < len(case["backoff"]),
    ),
    CR(
        "C-DESC-LEN",
        CONSUMER_DESCRIPTION_TOO_LONG,
        "description",
        "the description is longer than 4096 bytes.",
        "Shorten it.",
        lambda case: len(case["description"].encode()) > DESCRIPTION_MAX_BYTES,
    ),
)


def _by_flow(case: ConsumerCase) -> bool:
    return bool(case["ack_policy"] == "flow_control")


METADATA_RULES = (
    CR(
        "C-META-LEN",
        METADATA_TOO_LARGE,
        "metadata",
        "the metadata is larger than 128 KiB less the server's own 16 bytes.",
        "Shorten keys or values.",
        lambda case: metadata_bytes(case["metadata"]) > METADATA_MAX_BYTES - OWN_BYTES,
    ),
)


def _is_work_queue(case: ConsumerCase) -> bool:
    return case.retention == "workqueue" and not case["direct"] and not case["sourcing"]


def _no_folder(case: ConsumerCase) -> Found:
    """Whether the consumer's name prevents the server from creating a folder for it."""
    if case.stream is None or case.stream["storage"] == "memory" or case["mem_storage"]:
        return False
    name = case["name"] or case["durable_name"]
    too_long = not case["durable_name"] and len(name.encode()) > NAME_MAX_BYTES
    return not case["direct"] and (too_long or "\0" in name)


LATE_RULES = (
    CR(
        "C-WQ-EXPLICIT",
        WORKQUEUE_REQUIRES_EXPLICIT_ACK,
        "ack_policy",
        "a workqueue stream needs ack policy explicit.",
        "Set ack_policy to explicit.",
        lambda case: (
            _is_work_queue(case) and case["ack_policy"] not in ("explicit", "flow_control")
        ),
    ),
    CR(
        "C-WQ-DELIVERALL",
        WORKQUEUE_REQUIRES_DELIVER_ALL,
        "deliver_policy",
        "a consumer of a workqueue stream must deliver all.",
        "Remove deliver_policy.",
        lambda case: _is_work_queue(case) and case["deliver_policy"] not in ("", "all"),
    ),
    CR(
        "C-NAME",
        CONSUMER_NAME_INVALID,
        "",
        "the name {detail}.",
        "Use letters, digits, - and _.",
        _name,
        until="2.12.8",
    ),
    CR(
        "C-NAME-LEN",
        CONSUMER_NAME_TOO_LONG,
        "durable_name",
        "the name is longer than 255 bytes.",
        "Shorten it.",
        lambda case: len(case["durable_name"].encode()) > NAME_MAX_BYTES,
    ),
    CR(
        "C-NAME-FOLDER",
        CONSUMER_CREATE,
        "name",
        "the name is longer than 255 bytes or has a NUL, which folder names cannot have.",
        "Use fewer letters, digits, - and _, or set mem_storage.",
        _no_folder,
    ),
)
"""Rules that the server checks after all others."""

EARLY_RULES = (
    *REQUEST_RULES,
    *DEFAULT_RULES,
    *ACK_RULES,
    *DELIVERY_RULES,
    *FILTER_RULES,
    *METADATA_RULES,
    *PRIORITY_RULES,
)
"""Rules that the server checks before it looks up whether the consumer exists."""

CONSUMER_RULES = (*EARLY_RULES, *LATE_RULES)
"""All rules that depend only on the settings of the consumer and its stream."""
