"""Rules for the delivery settings of push consumers and pull consumers."""

from __future__ import annotations

from twinstream.models.error_codes import (
    DELIVER_CYCLE,
    DELIVER_SUBJECT_INVALID,
    DELIVER_SUBJECT_WILDCARD,
    DIRECT_REQUIRES_EPHEMERAL,
    DIRECT_REQUIRES_PUSH,
    HEARTBEAT_TOO_SMALL,
    INACTIVE_THRESHOLD_EXCEEDED,
    MAX_ACK_PENDING_EXCEEDED,
    MAX_ACK_PENDING_NEEDS_ACKS,
    MAX_BATCH_NEGATIVE,
    MAX_EXPIRES_TOO_SMALL,
    MAX_WAITING_NEGATIVE,
    PULL_FLOW_CONTROL,
    PULL_HEARTBEAT,
    PULL_RATE_LIMIT,
    PULL_REQUIRES_ACK,
    PUSH_MAX_WAITING,
)
from twinstream.models.names.subjects import is_contained, is_literal, is_subject
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.rule import Found, Rule

CR = Rule[ConsumerCase]

SHORTEST_HEARTBEAT = 100_000_000
"""The minimum of `idle_heartbeat`: 100 milliseconds, in nanoseconds."""

SHORTEST_EXPIRES = 1_000_000
"""The minimum of `max_expires`: one millisecond, in nanoseconds."""


def _cycle(case: ConsumerCase) -> Found:
    if not case.is_push or case.stream is None or case.stream.mirror is not None:
        return False
    return any(is_contained(case["deliver_subject"], taken) for taken in case.stream.subjects)


PUSH_RULES = (
    CR(
        "C-DELIVER-WILD",
        DELIVER_SUBJECT_WILDCARD,
        "deliver_subject",
        "{value} has a wildcard.",
        "Deliver to one subject.",
        lambda case: case.is_push and not is_literal(case["deliver_subject"]),
    ),
    CR(
        "C-DELIVER-INVALID",
        DELIVER_SUBJECT_INVALID,
        "deliver_subject",
        "{value} is not a subject.",
        "Write tokens without blanks, separated by dots.",
        lambda case: case.is_push and not is_subject(case["deliver_subject"]),
    ),
    CR(
        "C-DELIVER-CYCLE",
        DELIVER_CYCLE,
        "deliver_subject",
        "the stream captures {value}, so it would store its own deliveries.",
        "Deliver to a subject outside the stream.",
        _cycle,
    ),
    CR(
        "C-PUSH-MAXWAITING",
        PUSH_MAX_WAITING,
        "max_waiting",
        "max_waiting is for pull consumers.",
        "Remove max_waiting or deliver_subject.",
        lambda case: case.is_push and case["max_waiting"] != 0,
    ),
    CR(
        "C-MAXACK-POLICY",
        MAX_ACK_PENDING_NEEDS_ACKS,
        "max_ack_pending",
        "max_ack_pending needs an ack policy other than none.",
        "Set ack_policy, or remove max_ack_pending.",
        lambda case: (
            case.is_push and case["max_ack_pending"] > 0 and case["ack_policy"] in ("", "none")
        ),
    ),
    CR(
        "C-HEARTBEAT-MIN",
        HEARTBEAT_TOO_SMALL,
        "idle_heartbeat",
        "an idle_heartbeat of {value} ns is below 100 ms.",
        "Durations are in nanoseconds; 100 ms is 100000000.",
        lambda case: case.is_push and 0 < case["idle_heartbeat"] < SHORTEST_HEARTBEAT,
    ),
)

PULL_RULES = (
    CR(
        "C-PULL-WQ-ACK",
        PULL_REQUIRES_ACK,
        "ack_policy",
        "a pull consumer of a workqueue stream needs acknowledgements.",
        "Set ack_policy to explicit.",
        lambda case: (
            not case.is_push
            and case.retention == "workqueue"
            and case["ack_policy"] in ("", "none")
        ),
    ),
    CR(
        "C-PULL-RATELIMIT",
        PULL_RATE_LIMIT,
        "rate_limit_bps",
        "rate_limit_bps is for push consumers.",
        "Remove it.",
        lambda case: not case.is_push and case["rate_limit_bps"] > 0,
    ),
    CR(
        "C-WAITING-NEG",
        MAX_WAITING_NEGATIVE,
        "max_waiting",
        "max_waiting is negative.",
        "Leave it out for 512.",
        lambda case: not case.is_push and case["max_waiting"] < 0,
        until="2.12.0",
    ),
    CR(
        "C-PULL-HEARTBEAT",
        PULL_HEARTBEAT,
        "idle_heartbeat",
        "idle_heartbeat is for push consumers; each pull request contains its own.",
        "Remove it.",
        lambda case: not case.is_push and case["idle_heartbeat"] > 0,
    ),
    CR(
        "C-PULL-FLOW",
        PULL_FLOW_CONTROL,
        "flow_control",
        "flow_control is for push consumers.",
        "Remove it.",
        lambda case: not case.is_push and case["flow_control"],
    ),
    CR(
        "C-BATCH-NEG",
        MAX_BATCH_NEGATIVE,
        "max_batch",
        "max_batch is negative.",
        "Leave it out for no limit.",
        lambda case: not case.is_push and case["max_batch"] < 0,
        until="2.12.0",
    ),
    CR(
        "C-PULL-EXPIRES",
        MAX_EXPIRES_TOO_SMALL,
        "max_expires",
        "a max_expires of {value} ns is below one millisecond.",
        "Durations are in nanoseconds; one millisecond is 1000000.",
        lambda case: not case.is_push and 0 != case["max_expires"] < SHORTEST_EXPIRES,
    ),
)

BOUND_RULES = (
    CR(
        "C-MAXACK-SERVER",
        MAX_ACK_PENDING_EXCEEDED,
        "max_ack_pending",
        "max_ack_pending is above the stream's consumer_limits.",
        "Lower it.",
        lambda case: 0 < case.stream_limits["max_ack_pending"] < case["max_ack_pending"],
    ),
    CR(
        "C-INACTIVE-LIMIT",
        INACTIVE_THRESHOLD_EXCEEDED,
        "inactive_threshold",
        "inactive_threshold is above the stream's consumer_limits.",
        "Lower it.",
        lambda case: 0 < case.stream_limits["inactive_threshold"] < case["inactive_threshold"],
    ),
    CR(
        "C-DIRECT-PUSH",
        DIRECT_REQUIRES_PUSH,
        "direct",
        "a direct consumer needs a deliver_subject.",
        "Remove direct; it is for the server's own consumers.",
        lambda case: case["direct"] and not case.is_push,
    ),
    CR(
        "C-DIRECT-EPHEMERAL",
        DIRECT_REQUIRES_EPHEMERAL,
        "direct",
        "a direct consumer cannot be durable.",
        "Remove direct; it is for the server's own consumers.",
        lambda case: case["direct"] and bool(case["durable_name"]),
    ),
)

DELIVERY_RULES = (*PUSH_RULES, *PULL_RULES, *BOUND_RULES)
