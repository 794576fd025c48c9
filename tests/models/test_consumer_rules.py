"""Each consumer rule by an example: rule, code, location and message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from twinstream.models import ConsumerConfig, StreamConfig, effective_consumer, validate_consumer

SECOND = 1_000_000_000
PUSH = {"durable_name": "C", "deliver_subject": "d", "ack_policy": "explicit"}
PULL = {"durable_name": "C", "ack_policy": "explicit"}
WORK = {"name": "W", "subjects": ["w.>"], "retention": "workqueue"}
BOUND = {"name": "B", "consumer_limits": {"max_ack_pending": 5, "inactive_threshold": SECOND}}

GOOD: list[dict[str, Any]] = [
    {},
    PULL,
    PUSH,
    {**PULL, "backoff": [1, 2, 3], "max_deliver": 3},
    {**PULL, "max_deliver": -7},
    {**PULL, "filter_subjects": ["a.*", "*.b"]},
    {**PULL, "sample_freq": "101%"},
    {**PULL, "deliver_policy": "by_start_sequence", "opt_start_seq": 1},
    {**PULL, "priority_policy": "overflow", "priority_groups": ["g"]},
    {**PUSH, "flow_control": True, "idle_heartbeat": SECOND},
    {"name": "C", "durable_name": "C"},
]

BAD: list[tuple[dict[str, Any], str, int, str]] = [
    ({"name": "a b"}, "C-NAME", 10052, "name"),
    ({"name": "a.b"}, "R-NAME-DOT", 10131, "name"),
    ({"durable_name": "a.b"}, "R-NAME-DOT", 10017, "durable_name"),
    ({"name": "a.b", "durable_name": "a.b"}, "R-NAME-DOT", 10017, "durable_name"),
    ({"name": "a.b/c"}, "R-NAME-DOT", 10131, "name"),
    ({"name": "a/b", "durable_name": "c"}, "R-CONSUMER-PATHSEP", 10127, "name"),
    ({"name": "a", "durable_name": "b/c"}, "R-DURABLE-SUBJECT", 10017, "durable_name"),
    ({"name": "a/b"}, "R-CONSUMER-PATHSEP", 10127, "name"),
    ({"name": "a", "durable_name": "b"}, "R-DURABLE-SUBJECT", 10017, "durable_name"),
    ({**PULL, "durable_name": "x" * 256}, "C-NAME-LEN", 10102, "durable_name"),
    ({**PULL, "num_replicas": -1}, "C-REPL-NEG", 10133, "num_replicas"),
    ({**PULL, "backoff": [1, -1]}, "C-BACKOFF-NEG", 10184, "backoff[1]"),
    ({**PULL, "ack_wait": -1}, "C-ACKWAIT-NEG", 10183, "ack_wait"),
    ({**PULL, "ack_policy": "flow_control"}, "C-FC-PUSH", 10218, "ack_policy"),
    ({**PULL, "backoff": [1, 2, 3], "max_deliver": 2}, "C-BACKOFF-MAXDELIVER", 10116, "backoff"),
    ({**PULL, "description": "x" * 4097}, "C-DESC-LEN", 10107, "description"),
    ({**PUSH, "deliver_subject": "d.*"}, "C-DELIVER-WILD", 10079, "deliver_subject"),
    ({**PUSH, "deliver_subject": "d..x"}, "C-DELIVER-INVALID", 10112, "deliver_subject"),
    ({**PUSH, "max_waiting": 5}, "C-PUSH-MAXWAITING", 10080, "max_waiting"),
    (
        {**PUSH, "ack_policy": "none", "max_ack_pending": 5},
        "C-MAXACK-POLICY",
        10082,
        "max_ack_pending",
    ),
    ({**PUSH, "idle_heartbeat": 5}, "C-HEARTBEAT-MIN", 10083, "idle_heartbeat"),
    ({**PUSH, "flow_control": True}, "C-FLOW-HEARTBEAT", 10108, "idle_heartbeat"),
    ({**PULL, "rate_limit_bps": 5}, "C-PULL-RATELIMIT", 10086, "rate_limit_bps"),
    ({**PULL, "idle_heartbeat": SECOND}, "C-PULL-HEARTBEAT", 10088, "idle_heartbeat"),
    ({**PULL, "flow_control": True}, "C-PULL-FLOW", 10089, "flow_control"),
    ({**PULL, "max_expires": 5}, "C-PULL-EXPIRES", 10115, "max_expires"),
    ({"direct": True}, "C-DIRECT-PUSH", 10090, "direct"),
    ({**PUSH, "direct": True}, "C-DIRECT-EPHEMERAL", 10091, "direct"),
    (
        {**PULL, "filter_subject": "a", "filter_subjects": ["b"]},
        "C-FILTER-BOTH",
        10136,
        "filter_subjects",
    ),
    ({**PULL, "filter_subject": "a..b"}, "C-FILTER-INVALID", 10052, "filter_subject"),
    ({**PULL, "filter_subjects": ["a", ""]}, "C-FILTER-EMPTY", 10139, "filter_subjects[1]"),
    ({**PULL, "filter_subjects": ["a", "b.."]}, "C-FILTER-INVALID", 10052, "filter_subjects[1]"),
    ({**PULL, "filter_subjects": ["a.*", "a.b"]}, "C-FILTER-OVERLAP", 10138, "filter_subjects[1]"),
    ({**PULL, "opt_start_seq": 5}, "C-START-POLICY", 10094, "opt_start_seq"),
    ({**PULL, "deliver_policy": "by_start_time"}, "C-START-POLICY", 10094, "opt_start_time"),
    ({**PULL, "deliver_policy": "last_per_subject"}, "C-START-POLICY", 10094, "deliver_policy"),
    ({**PULL, "sample_freq": "half"}, "C-SAMPLE", 10095, "sample_freq"),
    ({**PULL, "metadata": {"k": "x" * 131072}}, "C-META-LEN", 10135, "metadata"),
    (
        {**PUSH, "priority_policy": "overflow", "priority_groups": ["g"]},
        "C-PRIO-PUSH",
        10178,
        "priority_policy",
    ),
    ({**PULL, "priority_policy": "overflow"}, "C-PRIO-NOGROUP", 10159, "priority_groups"),
    (
        {**PULL, "priority_policy": "overflow", "priority_groups": ["a b"]},
        "C-PRIO-GROUPNAME",
        10162,
        "priority_groups[0]",
    ),
    (
        # The server judges one group after the other.
        {**PULL, "priority_policy": "overflow", "priority_groups": ["a b", ""]},
        "C-PRIO-GROUPNAME",
        10162,
        "priority_groups[0]",
    ),
    (
        {**PULL, "priority_policy": "overflow", "priority_groups": ["", "a b"]},
        "C-PRIO-EMPTY",
        10161,
        "priority_groups[0]",
    ),
    ({**PULL, "priority_groups": ["g"]}, "C-PRIO-POLICY-NONE", 10196, "priority_groups"),
    ({**PULL, "priority_timeout": 5}, "C-PRIO-TTL-NONE", 10197, "priority_timeout"),
    ({**PULL, "ack_polcy": "all"}, "R-UNKNOWN", 10025, "ack_polcy"),
    ({**PULL, "opt_start_time": "now"}, "R-JSON", 10025, "opt_start_time"),
    ({**PULL, "sample_freq": 50}, "R-JSON", 10025, "sample_freq"),
]

OF_STREAM: list[tuple[dict[str, Any], dict[str, Any], str, int]] = [
    ({"name": "S"}, {**PULL, "num_replicas": 3}, "C-REPL-EXCEEDS", 10126),
    ({**WORK, "num_replicas": 3}, {**PULL, "num_replicas": 1}, "C-REPL-MATCH", 10134),
    ({"name": "d"}, PUSH, "C-DELIVER-CYCLE", 10081),
    (WORK, {"durable_name": "C"}, "C-PULL-WQ-ACK", 10084),
    (WORK, {"durable_name": "C", "ack_policy": "all"}, "C-WQ-EXPLICIT", 10098),
    (WORK, {**PULL, "deliver_policy": "new"}, "C-WQ-DELIVERALL", 10101),
    (BOUND, {**PULL, "max_ack_pending": 6}, "C-MAXACK-SERVER", 10121),
    (BOUND, {**PULL, "inactive_threshold": 2 * SECOND}, "C-INACTIVE-LIMIT", 10153),
    ({"name": "F"}, {"name": "x" * 256}, "C-NAME-FOLDER", 10012),
    ({"name": "F"}, {"durable_name": "a\0b"}, "C-NAME-FOLDER", 10012),
]


@pytest.mark.parametrize("config", GOOD, ids=str)
def test_a_good_config_has_no_problem(config: dict[str, Any]) -> None:
    assert validate_consumer(config) == []


@pytest.mark.parametrize(("config", "rule", "code", "path"), BAD, ids=lambda one: str(one)[:40])
def test_each_rule_reports_code_and_position(
    config: dict[str, Any], rule: str, code: int, path: str
) -> None:
    problem = validate_consumer(config)[0]
    assert (problem.rule, problem.err_code, problem.path) == (rule, code, path)
    assert problem.message.endswith(".")
    assert problem.hint.endswith((".", "?"))


@pytest.mark.parametrize(
    ("stream", "config", "rule", "code"), OF_STREAM, ids=lambda one: str(one)[:40]
)
def test_some_rules_need_the_stream(
    stream: dict[str, Any], config: dict[str, Any], rule: str, code: int
) -> None:
    assert rule not in [problem.rule for problem in validate_consumer(config)]
    problem = validate_consumer(config, stream)[0]
    assert (problem.rule, problem.err_code) == (rule, code)


@pytest.mark.parametrize(
    ("config", "server", "codes"),
    [
        ({**PULL, "ack_wait": -1}, "2.11", []),
        ({**PULL, "max_waiting": -1}, "2.11", [10087]),
        ({**PULL, "max_waiting": -1}, "2.12", []),
        ({**PULL, "max_batch": -1}, "2.11", [10114]),
        ({**PULL, "priority_groups": ["g"]}, "2.11", []),
        ({**PULL, "priority_policy": "prioritized", "priority_groups": ["g"]}, "2.11", [10025]),
        ({**PULL, "priority_policy": "prioritized", "priority_groups": ["g"]}, "2.12", []),
        ({"name": "a b"}, "2.11", [10103]),
        ({"name": "a b", "description": "x" * 4097}, "2.12.7", [10107, 10103]),
        ({"name": "a b", "description": "x" * 4097}, "2.12.8", [10052, 10107]),
        ({**PULL, "filter_subjects": ["a.*", "*.b"]}, "2.12.4", [10138, 10138]),
        ({**PULL, "filter_subjects": ["a.*", "*.b"]}, "2.12.5", []),
        ({**PULL, "filter_subjects": ["*.b", ".>"]}, "2.12.4", [10052]),
        ({**PUSH, "priority_policy": "overflow", "priority_groups": ["g"]}, "2.11.6", []),
        ({**PUSH, "priority_policy": "overflow", "priority_groups": ["g"]}, "2.11.7", [10178]),
    ],
    ids=str,
)
def test_rules_follow_the_version(config: dict[str, Any], server: str, codes: list[int]) -> None:
    assert [problem.err_code for problem in validate_consumer(config, server=server)] == codes


def test_consumer_of_a_source_becomes_durable_if_acks_remove_messages() -> None:
    config = {"name": "C", "ack_policy": "none", "direct": True, "sourcing": True}
    pushed = {**config, "deliver_subject": "d", "ack_wait": 5}
    work = {"name": "W", "retention": "workqueue"}
    assert [one.err_code for one in validate_consumer(config, work)][:1] == [10218]
    assert validate_consumer(pushed, work) == []
    stored = effective_consumer(pushed, work)
    assert (stored.durable_name, stored.ack_policy, stored.direct) == ("C", "flow_control", None)
    assert (stored.ack_wait, stored.inactive_threshold) == (None, None)
    assert [one.err_code for one in validate_consumer(config, {"name": "L"})][:1] == [10090]


def test_pedantic_requests_refuse_silent_changes() -> None:
    for config in (
        {**PULL, "max_deliver": -2},
        {**PULL, "backoff": [5]},
        {**PULL, "max_batch": -1},
    ):
        assert validate_consumer(config) == []
        assert validate_consumer(config, pedantic=True)[0].err_code == 10157
    for config in ({**PULL, "max_deliver": -2}, {**PULL, "max_ack_pending": -2}):
        assert validate_consumer(config, server="2.11", pedantic=True) == []
        assert validate_consumer(config, server="2.12", pedantic=True)[0].err_code == 10157
    assert validate_consumer(PULL, BOUND) == []
    assert validate_consumer(PULL, BOUND, pedantic=True)[0].err_code == 10157


def test_models_are_validated_in_the_context_of_models() -> None:
    config = ConsumerConfig(durable_name="C", ack_policy="all", ack_wait=timedelta(seconds=1))
    stream = StreamConfig(name="W", retention="workqueue")
    assert [problem.rule for problem in validate_consumer(config, stream)] == ["C-WQ-EXPLICIT"]
