"""Warnings about valid but rarely intended settings."""

from __future__ import annotations

from typing import Any

import pytest

from twinstream.models import lint_consumer, lint_stream, validate_consumer, validate_stream

SECOND = 1_000_000_000
BASE = {"name": "S", "subjects": ["a.>"], "max_bytes": 10}
COPY = {"name": "S", "max_bytes": 10}
PULL = {"durable_name": "C", "ack_policy": "explicit", "max_deliver": 5}


@pytest.mark.parametrize(
    ("config", "rules"),
    [
        (BASE, []),
        ({"name": "S", "subjects": ["a"]}, ["L-NO-LIMIT"]),
        ({"name": "S", "subjects": ["a"], "retention": "workqueue"}, []),
        ({"name": "S", "max_bytes": 10}, ["L-NO-SUBJECTS"]),
        ({**COPY, "sources": [{"name": "O"}]}, []),
        ({**BASE, "first_seq": 2**62}, ["L-SEQ-HIDDEN"]),
        ({**BASE, "first_seq": 2**62 - 1}, []),
        ({**BASE, "first_seq": 2**63, "storage": "memory", "num_replicas": 3}, []),
        ({**BASE, "republish": {"src": "a.b", "dest": "c.b"}}, []),
        ({**BASE, "republish": {"dest": "c.>"}}, []),
        ({**BASE, "republish": {"src": "b.>", "dest": "c.>"}}, ["L-REPUBLISH-OUTSIDE"]),
        ({**BASE, "subject_transform": {"src": "b.*", "dest": "c.$1"}}, ["L-TRANSFORM-OUTSIDE"]),
        (
            {
                **BASE,
                "subject_transform": {"src": "a.*", "dest": "b.$1"},
                "republish": {"src": "b.>", "dest": "c.>"},
            },
            [],
        ),
        (
            {
                **COPY,
                "sources": [{"name": "O"}],
                "republish": {"src": "b.>", "dest": "c.>"},
                "subject_transform": {"src": "b.*", "dest": "d.$1"},
            },
            [],
        ),
        ({**BASE, "duplicate_window": 3600 * SECOND}, ["L-WINDOW-LARGE"]),
        ({**BASE, "subject_delete_marker_ttl": SECOND}, ["L-TTL-SILENT"]),
        (
            {
                **BASE,
                "discard": "new",
                "max_msgs_per_subject": 1,
                "discard_new_per_subject": True,
                "subject_delete_marker_ttl": SECOND,
                "allow_msg_ttl": True,
                "allow_rollup_hdrs": True,
            },
            ["L-INSERT-MARKER"],
        ),
        (
            {
                **BASE,
                "subject_delete_marker_ttl": 2 * SECOND,
                "allow_msg_ttl": True,
                "allow_rollup_hdrs": True,
            },
            ["L-TTL-RAISED"],
        ),
        ({**BASE, "deny_purge": True, "allow_msg_schedules": True}, ["L-PURGE-SILENT"]),
        ({**BASE, "max_msgs": -5}, ["L-NEGATIVE"]),
        ({**BASE, "no_ack": True}, ["L-NO-ACK"]),
        ({**BASE, "no_ack": True, "subjects": [">"]}, []),
        ({**BASE, "storage": "memory"}, ["L-MEMORY-REPLICA"]),
        (
            {**COPY, "mirror": {"name": "O", "opt_start_time": "2026-01-01T00:00:00+00:00"}},
            ["L-MIRROR-ZONE"],
        ),
        ({**COPY, "mirror": {"name": "O", "opt_start_time": "2026-01-01T00:00:00+02:00"}}, []),
        (
            {**BASE, "subject_transform": {"src": "a.*", "dest": "b.{{partition(0,1)}}"}},
            ["L-NO-PARTITION"],
        ),
        ({**BASE, "subject_transform": {"src": "a.*", "dest": "b.{{partition(10,1)}}"}}, []),
        (
            {**BASE, "subject_transform": {"src": "a.*", "dest": "b.{{x{{ Partition( -0 ,1)}}"}},
            ["L-NO-PARTITION"],
        ),
        (
            {
                **COPY,
                "sources": [
                    {
                        "name": "O",
                        "subject_transforms": [{"src": "a.*", "dest": "b.{{partition(0,1)}}"}],
                    }
                ],
            },
            ["L-NO-PARTITION"],
        ),
    ],
    ids=str,
)
def test_surprises_of_a_stream_are_no_problems(config: dict[str, Any], rules: list[str]) -> None:
    assert [one.rule for one in lint_stream(config)] == rules
    assert [one for one in validate_stream(config) if not one.needs_server] == []


def test_a_number_that_ends_as_no_partition() -> None:
    transform = {"src": "a.*", "dest": f"b.{{{{partition({2**32},1)}}}}"}
    (found,) = lint_stream({**BASE, "subject_transform": transform}, "2.11.4")
    assert (found.rule, found.path) == ("L-NO-PARTITION", "subject_transform.dest")


@pytest.mark.parametrize(
    ("config", "rules"),
    [
        (PULL, []),
        ({"durable_name": "C"}, ["L-NO-ACKS"]),
        ({"name": "C", "ack_policy": "none"}, ["L-VANISHES"]),
        ({"name": "C", "ack_policy": "none", "inactive_threshold": SECOND}, []),
        (
            {**PULL, "backoff": [SECOND], "ack_wait": 5 * SECOND},
            ["L-BACKOFF-WAIT", "L-BACKOFF-NAK"],
        ),
        ({"durable_name": "C", "ack_policy": "explicit"}, ["L-UNACKED-FOREVER"]),
        ({**PULL, "sample_freq": "101%"}, ["L-SAMPLE"]),
        (
            {**PULL, "priority_policy": "overflow", "priority_groups": ["a", "b"]},
            ["L-GROUPS"],
        ),
        (
            {**PULL, "deliver_subject": "d", "deliver_group": "g", "idle_heartbeat": SECOND},
            ["L-GROUP-HEARTBEAT"],
        ),
        ({**PULL, "deliver_subject": "d", "idle_heartbeat": SECOND}, []),
    ],
    ids=str,
)
def test_surprises_of_a_consumer_are_no_problems(config: dict[str, Any], rules: list[str]) -> None:
    assert [one.rule for one in lint_consumer(config)] == rules
    assert validate_consumer(config) == []


def test_an_ack_policy_that_is_left_out_is_the_servers_or_the_sdks() -> None:
    [found] = lint_consumer({"durable_name": "C"})
    assert "the server uses none" in found.message
    assert "create_consumer" in found.hint


def test_filters_that_miss_the_stream() -> None:
    stream = {"name": "S", "subjects": ["a.>"]}
    found = lint_consumer({**PULL, "filter_subjects": ["a.x", "b.x"]}, stream)
    assert [(one.rule, one.path, one.value) for one in found] == [
        ("L-FILTER-OUTSIDE", "filter_subjects", "b.x")
    ]
    assert lint_consumer({**PULL, "filter_subject": "b"}, {"mirror": {"name": "O"}}) == []
    [found] = lint_consumer({**PULL, "filter_subject": "b"}, {"name": "S"})
    assert (found.rule, found.path) == ("L-FILTER-OUTSIDE", "filter_subject")


@pytest.mark.parametrize(
    ("source", "dest", "wanted", "missed"),
    [
        ("a.*", "b.$1", "b.x", False),
        ("a.*", "b.$1", "b.*.c", True),
        ("a.*", "b.$1", "a.x.y", False),
        ("a.>", "b.>", "a.x", True),
        ("a.*", "b.{{split(1,-)}}", "b.x.y", False),
        ("a.*", "b.{{split(1,-)}}", "c.x", True),
        ("c.*", "b.$1", "b.x", True),
        ("a.*", "", "a.x", False),
    ],
)
def test_filters_apply_to_transformed_subjects(
    source: str, dest: str, wanted: str, missed: bool
) -> None:
    stream = {"name": "S", "subjects": ["a.>"], "subject_transform": {"src": source, "dest": dest}}
    found = lint_consumer({**PULL, "filter_subject": wanted}, stream)
    assert [one.rule for one in found] == ["L-FILTER-OUTSIDE"] * missed


def test_old_servers_drop_what_they_do_not_know() -> None:
    [one] = lint_stream({**BASE, "allow_atomic": True}, "2.11")
    assert one.message == "allow_atomic needs server 2.12; it is dropped."
    assert lint_stream({**BASE, "allow_atomic": True}, "2.12") == []


def test_broken_text_is_not_for_lint() -> None:
    assert lint_stream("{") == []
    assert lint_consumer("{") == []


def test_unread_members_are_not_reported_as_missing() -> None:
    # The limit is there, in a form that the server refuses.
    assert lint_stream({"name": "S", "subjects": ["a"], "max_age": "1h"}) == []
    assert lint_stream({"name": "S", "subjects": ["a"], "max_agee": SECOND}) == []
    assert lint_consumer({"durable_name": "C", "ack_policy": 7}) == []
