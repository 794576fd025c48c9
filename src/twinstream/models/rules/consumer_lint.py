"""Rules for warnings about valid but rarely intended settings of a consumer."""

from __future__ import annotations

from twinstream.models.names.overlaps import first_related
from twinstream.models.names.subjects import can_meet
from twinstream.models.numbers import whole_number
from twinstream.models.rules.consumer_case import ConsumerCase
from twinstream.models.rules.rule import Found, Hit, Rule

CL = Rule[ConsumerCase]


def _misses_stream(case: ConsumerCase) -> Found:
    """Find filters that no subject of the stream can match."""
    kept = None if case.stream is None else case.stream.kept_subjects
    if kept is None:
        return False
    met = first_related(case.filters, kept, can_meet)
    missed = [one for index, one in enumerate(case.filters) if index not in met]
    member = "filter_subject" if case.given["filter_subject"] else "filter_subjects"
    return [Hit(member, one) for one in missed]


CONSUMER_LINT = (
    CL(
        "L-NO-ACKS",
        0,
        "ack_policy",
        "without ack_policy the server uses none: it redelivers no message.",
        "Set it to explicit, which is the default of create_consumer in the SDK, or to none.",
        lambda case: "ack_policy" not in case.given,
    ),
    CL(
        "L-VANISHES",
        0,
        "name",
        "without durable_name the server deletes the consumer after five idle seconds.",
        "Set durable_name, or inactive_threshold.",
        lambda case: (
            bool(case.given["name"])
            and not case.given["durable_name"]
            and not case.given["inactive_threshold"]
        ),
    ),
    CL(
        "L-BACKOFF-WAIT",
        0,
        "ack_wait",
        "the first backoff replaces ack_wait.",
        "Remove ack_wait.",
        lambda case: (
            bool(case.given["backoff"])
            and case.given["ack_wait"] not in (0, case.given["backoff"][0])
        ),
    ),
    CL(
        "L-BACKOFF-NAK",
        0,
        "backoff",
        "a nak ignores backoff: the server redelivers the message at once.",
        "Pass a delay to nak.",
        lambda case: bool(case.given["backoff"]) and case["ack_policy"] in ("explicit", "all"),
    ),
    CL(
        "L-UNACKED-FOREVER",
        0,
        "max_deliver",
        "without max_deliver a message that always fails is redelivered without end.",
        "Set max_deliver and watch for its advisory.",
        lambda case: case["max_deliver"] == -1 and case["ack_policy"] == "explicit",
    ),
    CL(
        "L-FILTER-OUTSIDE",
        0,
        "",
        "the stream captures nothing on {value}.",
        "Compare with the stream's subjects.",
        _misses_stream,
    ),
    CL(
        "L-GROUPS",
        0,
        "priority_groups",
        "the server keeps one pin for all groups.",
        "Use one group.",
        lambda case: len(case.given["priority_groups"]) > 1,
    ),
    CL(
        "L-GROUP-HEARTBEAT",
        0,
        "idle_heartbeat",
        "the server sends each heartbeat to one member of the deliver_group: the others miss it.",
        "Leave idle_heartbeat out, and flow_control, which needs it.",
        lambda case: bool(case.given["deliver_group"]) and bool(case.given["idle_heartbeat"]),
    ),
    CL(
        "L-SAMPLE",
        0,
        "sample_freq",
        "more than 100 percent has the same effect as 100 percent.",
        'Write "100%".',
        lambda case: (
            case["sample_freq"].removesuffix("%").isdecimal()
            and whole_number(case["sample_freq"].removesuffix("%")) > 100
        ),
    ),
)
