"""Rules for a consumer's settings, in the order of the server.

Those for delivery, filters and priority groups have files of their own; ``CONSUMER_RULES`` puts
all in order.
"""

from __future__ import annotations

from collections.abc import Callable

from twinstream.models._subjects import NAME_MAX_BYTES, name_fault
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.consumer_defaults import ACK_WAIT, NEVER_NEGATIVE
from twinstream.models.rules.consumer_delivery import DELIVERY_RULES
from twinstream.models.rules.consumer_filters import FILTER_RULES
from twinstream.models.rules.consumer_priority import PRIORITY_RULES
from twinstream.models.rules.rule import Found, Hit, Rule
from twinstream.models.rules.stored import METADATA_MAX_BYTES, OWN_BYTES, metadata_bytes

PEDANTIC = 10157
DESCRIPTION_MAX_BYTES = 4_096
SECOND = 1_000_000_000

CR = Rule[ConsumerCase]


def _dotted(case: ConsumerCase) -> Found:
    return "." in case.given["name"] and case.given["name"] != case.given["durable_name"]


def _path_separator(case: ConsumerCase) -> Found:
    member = "name" if case.given["name"] else "durable_name"
    # The server looks at what the request's subject says up to a dot.
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
        "{value} has a dot, which the request's subject takes for the start of a filter.",
        "Use letters, digits, - and _.",
        test,
    )


REQUEST_RULES = (
    CR(
        "R-CONSUMER-PATHSEP",
        10127,
        "name",
        "{value} has a path separator.",
        "Use letters, digits, - and _.",
        _path_separator,
    ),
    # What the subject says up to the dot is no longer the name of a durable consumer.
    _name_dot(10017, "durable_name", lambda case: "." in case.given["durable_name"]),
    CR(
        "R-DURABLE-SUBJECT",
        10017,
        "durable_name",
        "name and durable_name differ.",
        "Remove one of them.",
        lambda case: (
            bool(case.given["name"])
            and bool(case.given["durable_name"])
            and case.given["name"] != case.given["durable_name"]
        ),
    ),
    _name_dot(10131, "name", _dotted),
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
        10052,
        "",
        "the name {detail}.",
        "Use letters, digits, - and _.",
        _name,
        since="2.12.8",
    ),
    CR(
        "C-REPL-NEG",
        10133,
        "num_replicas",
        "the number of replicas is negative.",
        "Leave num_replicas out to follow the stream.",
        lambda case: case["num_replicas"] < 0,
    ),
    CR(
        "C-REPL-EXCEEDS",
        10126,
        "num_replicas",
        "{value} replicas are more than the stream has.",
        "Leave num_replicas out to follow the stream.",
        lambda case: (
            case.stream is not None and case["num_replicas"] > max(1, case.stream["num_replicas"])
        ),
    ),
    CR(
        "C-REPL-MATCH",
        10134,
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
        10184,
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
        10183,
        "ack_wait",
        "ack_wait is negative.",
        "Leave it out for 30 seconds.",
        lambda case: case["ack_wait"] < 0,
        since="2.12.0",
    ),
    CR(
        "C-FC-PUSH",
        10218,
        "ack_policy",
        "ack policy flow_control needs a deliver_subject.",
        "It is meant for prepared sources; use explicit otherwise.",
        lambda case: _by_flow(case) and not case.is_push,
        since="2.14.0",
    ),
    CR(
        "C-FC-FLOW",
        10219,
        "flow_control",
        "ack policy flow_control needs flow_control.",
        "Set flow_control.",
        lambda case: _by_flow(case) and not case["flow_control"],
        since="2.14.0",
    ),
    CR(
        "C-FC-HEARTBEAT",
        10052,
        "idle_heartbeat",
        "ack policy flow_control needs a heartbeat of one second.",
        "Set idle_heartbeat to 1000000000.",
        lambda case: _by_flow(case) and case["idle_heartbeat"] != SECOND,
        since="2.14.0",
    ),
    CR(
        "C-FC-MAXACK",
        10220,
        "max_ack_pending",
        "ack policy flow_control needs max_ack_pending.",
        "Set it above 0.",
        lambda case: _by_flow(case) and case["max_ack_pending"] <= 0,
        since="2.14.0",
    ),
    CR(
        "C-FC-ACKWAIT",
        10221,
        "ack_wait",
        "ack policy flow_control excludes ack_wait and backoff.",
        "Remove them.",
        lambda case: _by_flow(case) and (bool(case["ack_wait"]) or bool(case["backoff"])),
        since="2.14.0",
    ),
    CR(
        "C-FC-MAXDELIVER",
        10222,
        "max_deliver",
        "ack policy flow_control excludes max_deliver.",
        "Remove it.",
        lambda case: _by_flow(case) and case["max_deliver"] > 0,
        since="2.14.0",
    ),
    CR(
        "C-BACKOFF-MAXDELIVER",
        10116,
        "backoff",
        "there are more backoff values than deliveries.",
        "Raise max_deliver to their number, or remove some.",
        lambda case: bool(case["backoff"]) and -1 != case["max_deliver"] < len(case["backoff"]),
    ),
    CR(
        "C-DESC-LEN",
        10107,
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
        10135,
        "metadata",
        "the metadata is larger than 128 KiB less the server's own 16 bytes.",
        "Shorten keys or values.",
        lambda case: metadata_bytes(case["metadata"]) > METADATA_MAX_BYTES - OWN_BYTES,
    ),
)


def _is_work_queue(case: ConsumerCase) -> bool:
    return case.retention == "workqueue" and not case["direct"] and not case["sourcing"]


def _no_folder(case: ConsumerCase) -> Found:
    """Whether the server would keep the consumer in a folder of a name that cannot be."""
    if case.stream is None or case.stream["storage"] == "memory" or case["mem_storage"]:
        return False
    name = case["name"] or case["durable_name"]
    too_long = not case["durable_name"] and len(name.encode()) > NAME_MAX_BYTES
    return not case["direct"] and (too_long or "\0" in name)


LATE_RULES = (
    CR(
        "C-WQ-EXPLICIT",
        10098,
        "ack_policy",
        "a workqueue stream needs ack policy explicit.",
        "Set ack_policy to explicit.",
        lambda case: (
            _is_work_queue(case) and case["ack_policy"] not in ("explicit", "flow_control")
        ),
    ),
    CR(
        "C-WQ-DELIVERALL",
        10101,
        "deliver_policy",
        "a consumer of a workqueue stream must deliver all.",
        "Remove deliver_policy.",
        lambda case: _is_work_queue(case) and case["deliver_policy"] not in ("", "all"),
    ),
    CR(
        "C-NAME",
        10103,
        "",
        "the name {detail}.",
        "Use letters, digits, - and _.",
        _name,
        until="2.12.8",
    ),
    CR(
        "C-NAME-LEN",
        10102,
        "durable_name",
        "the name is longer than 255 bytes.",
        "Shorten it.",
        lambda case: len(case["durable_name"].encode()) > NAME_MAX_BYTES,
    ),
    CR(
        "C-NAME-FOLDER",
        10012,
        "name",
        "the name is longer than 255 bytes or has a NUL, which no folder's name can.",
        "Use fewer letters, digits, - and _, or set mem_storage.",
        _no_folder,
    ),
)
"""Judged when everything else is fine."""

EARLY_RULES = (
    *REQUEST_RULES,
    *DEFAULT_RULES,
    *ACK_RULES,
    *DELIVERY_RULES,
    *FILTER_RULES,
    *METADATA_RULES,
    *PRIORITY_RULES,
)
"""Judged before the server looks whether the consumer exists."""

CONSUMER_RULES = (*EARLY_RULES, *LATE_RULES)
"""All rules that need nothing but the settings and the stream's."""
