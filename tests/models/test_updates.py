"""Updates: what the server would refuse and store, and the planned action."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from typing import Any

import pytest

from twinstream.models import (
    Change,
    ConfigError,
    ConsumerConfig,
    StreamConfig,
    effective_consumer,
    effective_stream,
    encode,
    plan_consumer,
    plan_stream,
    validate_consumer,
    validate_consumer_update,
    validate_stream_update,
)

SECOND = 1_000_000_000
PULL = {"durable_name": "C", "ack_policy": "explicit"}
SEALED = {"sealed": True, "deny_delete": True, "deny_purge": True}

STREAMS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {}, []),
    ({"subjects": ["a"]}, {"subjects": ["b"], "max_msgs": 5}, []),
    ({"retention": "limits"}, {"retention": "interest"}, []),
    ({"mirror": {"name": "O"}}, {}, []),
    ({"storage": "memory"}, {}, ["U-STORAGE"]),
    ({}, {"retention": "workqueue"}, ["U-RETENTION"]),
    ({"sealed": True}, {}, ["U-UNSEAL", "U-DENY-DELETE", "U-DENY-PURGE"]),
    ({"sealed": True}, {"sealed": True, "description": "x"}, ["U-DENY-DELETE", "U-DENY-PURGE"]),
    (
        # Sealed as it is, a marker or schedules would let it be purged again.
        {**SEALED, "subject_delete_marker_ttl": SECOND},
        {**SEALED, "subject_delete_marker_ttl": 2 * SECOND},
        ["U-DENY-PURGE"],
    ),
    ({**SEALED, "max_age": SECOND}, {**SEALED, "max_msgs": 5}, []),
    ({"deny_delete": True}, {}, ["U-DENY-DELETE"]),
    ({"deny_purge": True}, {"allow_msg_schedules": True}, ["U-DENY-PURGE"]),
    ({}, {"mirror": {"name": "O"}}, ["U-MIRROR"]),
    ({"mirror": {"name": "O"}}, {"mirror": {"name": "P"}}, ["U-MIRROR"]),
    ({"subject_delete_marker_ttl": SECOND}, {}, ["U-TTL-OFF"]),
    ({}, {"allow_msg_counter": True}, ["U-COUNTER"]),
    ({"allow_msg_schedules": True}, {}, ["U-SCHED-OFF"]),
    ({}, {"persist_mode": "async"}, ["U-PERSIST"]),
    ({"republish": {"src": "x"}}, {"republish": {"src": "x"}}, ["U-REPUB-DEST"]),
    ({}, {"name": "T"}, ["U-NAME"]),
    ({"storage": "memory"}, {"max_age": 5}, ["S-AGE-MIN", "U-STORAGE"]),
]

CONSUMERS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {}, []),
    ({}, {"max_deliver": 5, "filter_subject": "a", "ack_wait": SECOND}, []),
    ({}, {"deliver_policy": "new"}, ["U-FIXED"]),
    ({}, {"ack_policy": "all"}, ["U-FIXED"]),
    ({}, {"replay_policy": "original"}, ["U-FIXED"]),
    ({}, {"max_waiting": 512}, []),
    ({}, {"max_waiting": 5}, ["U-FIXED"]),
    ({}, {"mem_storage": True}, ["U-FIXED"]),
    ({}, {"deliver_subject": "d"}, ["U-FIXED", "U-PUSH-PULL"]),
    ({}, {"durable_name": "D"}, ["U-NAME"]),
    ({}, {"pause_until": "2099-01-01T00:00:00Z"}, []),
]


def test_update_is_checked_again_after_implicit_changes() -> None:
    old = {"name": "S", "allow_msg_counter": True}
    new = {**old, "subject_delete_marker_ttl": 10**9}
    assert [one.rule for one in validate_stream_update(old, new)] == ["U-CTR-MARKER"]


def test_the_consumer_of_a_source_keeps_its_start() -> None:
    old = {"durable_name": "C", "ack_policy": "explicit", "sourcing": True}
    assert validate_consumer_update(old, {**old, "opt_start_seq": 5}) == []
    assert plan_consumer(old, {**old, "opt_start_seq": 5}).action == "nothing"
    other = {**old, "sourcing": False}
    refused = validate_consumer_update(other, {**old, "opt_start_seq": 5})
    assert [(one.rule, one.path) for one in refused] == [("U-FIXED", "sourcing")]
    assert validate_consumer_update(other, {**other, "opt_start_seq": 5}) != []


def test_consumer_of_a_source_made_durable_keeps_its_start() -> None:
    work = {"name": "W", "retention": "workqueue"}
    written = {"name": "C", "direct": True, "sourcing": True, "deliver_subject": "d"}
    old = effective_consumer(written, work)
    new = {**written, "deliver_policy": "by_start_sequence", "opt_start_seq": 5}
    assert validate_consumer_update(old, new, work) == []
    assert validate_consumer_update(old, new, {**work, "retention": "limits"}) != []


def test_rules_for_new_consumers_do_not_apply_to_others() -> None:
    old, new = {"name": "x" * 256}, {"durable_name": "x" * 256}
    assert validate_consumer_update(old, new) == []
    assert [one.rule for one in validate_consumer(new)] == ["C-NAME-LEN"]


@pytest.mark.parametrize(
    ("given", "answered"),
    [("+00:60", "+01:00"), ("-01:60", "-02:00"), ("-00:00", "Z"), ("+02:00", "+02:00")],
)
def test_times_are_compared_as_the_server_writes_them(given: str, answered: str) -> None:
    start = "2026-01-01T00:00:00"
    new = {**PULL, "deliver_policy": "by_start_time", "opt_start_time": start + given}
    assert plan_consumer({**new, "opt_start_time": start + answered}, new).action == "nothing"


def test_a_republish_that_follows_a_transform_to_nowhere_loses_its_source() -> None:
    new = {
        "name": "S",
        "subjects": ["a.*"],
        "subject_transform": {"src": "a.*"},
        "republish": {"src": ">", "dest": ">"},
    }
    stored = encode(effective_stream(new))
    assert stored["republish"] == {"dest": ""}
    assert plan_stream(stored, new).action == "nothing"


def test_a_limit_below_minus_one_that_the_stream_set_is_no_change() -> None:
    stream = {"name": "S", "consumer_limits": {"max_ack_pending": -7}}
    stored = encode(effective_consumer(PULL, stream))
    assert stored["max_ack_pending"] == -7
    assert plan_consumer(stored, PULL, stream).action == "nothing"


@pytest.mark.parametrize(("old", "new", "rules"), STREAMS, ids=str)
def test_stream_updates_are_validated_and_planned(
    old: dict[str, Any], new: dict[str, Any], rules: list[str]
) -> None:
    before, after = {"name": "S", **old}, {"name": "S", **new}
    problems = validate_stream_update(before, after)
    assert [problem.rule for problem in problems] == rules
    plan = plan_stream(before, after)
    assert (plan.action == "impossible") == (bool(rules) and old != new)


@pytest.mark.parametrize(("old", "new", "rules"), CONSUMERS, ids=str)
def test_consumer_updates_are_validated_and_planned(
    old: dict[str, Any], new: dict[str, Any], rules: list[str]
) -> None:
    before, after = {**PULL, **old}, {**PULL, **new}
    assert [problem.rule for problem in validate_consumer_update(before, after)] == rules
    assert (plan_consumer(before, after).action == "impossible") == bool(rules)


def test_time_zone_of_a_mirrors_start_is_known_to_the_server_only() -> None:
    start = "2026-01-01T00:00:00"
    old = {"name": "S", "mirror": {"name": "O", "opt_start_time": f"{start}Z"}}
    new = {"name": "S", "mirror": {"name": "O", "opt_start_time": f"{start}+00:00"}}
    assert validate_stream_update(old, old) == []
    problems = validate_stream_update(old, new)
    assert [(one.rule, one.err_code) for one in problems] == [("U-MIRROR-ZONE", 10055)]
    assert problems[0].needs_server
    assert plan_stream(old, new).action == "nothing"
    assert plan_stream(old, {**new, "max_msgs": 5}).action == "update"


@pytest.mark.parametrize(
    ("stored", "written"), [("00:00:00Z", "01:00:00+01:00"), ("01:00:00+01:00", "00:00:00Z")]
)
def test_the_start_of_a_mirror_in_another_zone_is_the_same_start(stored: str, written: str) -> None:
    def mirror(start: str, **more: object) -> dict[str, object]:
        origin = {"name": "O", "opt_start_time": f"2026-01-01T{start}"}
        return {"name": "S", "mirror": origin, **more}

    old, new = mirror(stored), mirror(written)
    # The server itself would refuse it as it is written.
    assert [one.rule for one in validate_stream_update(old, new)] == ["U-MIRROR"]
    assert plan_stream(old, new).action == "nothing"
    plan = plan_stream(old, json.dumps({**new, "max_msgs": 5}))
    assert (plan.action, [change.path for change in plan.changes]) == ("update", ["max_msgs"])
    later = mirror("02:00:00+01:00")
    assert plan_stream(old, later).action == "impossible"


def test_the_start_of_a_source_in_another_zone_is_the_same_start() -> None:
    starts = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T01:00:00Z")
    old, new, other = (
        {"name": "S", "sources": [{"name": "O", "opt_start_time": start}]} for start in starts
    )
    assert plan_stream(old, new).action == "nothing"
    assert [change.path for change in plan_stream(old, other).changes] == ["sources"]
    by_time = {**PULL, "deliver_policy": "by_start_time"}
    old, new, other = ({**by_time, "opt_start_time": start} for start in starts)
    assert plan_consumer(old, new).action == "nothing"
    assert plan_consumer(old, other).action == "impossible"


def test_old_servers_stumble_in_updates_over_transforms_of_external_sources() -> None:
    def update(dest: str, server: str) -> list[str]:
        source = {
            "name": "O",
            "external": {"api": "$JS.X.API"},
            "subject_transforms": [{"src": "a.*", "dest": dest}],
        }
        new = {"name": "S", "subjects": ["s"], "sources": [source]}
        found = validate_stream_update({"name": "S", "subjects": ["s"]}, new, server)
        return [f"{one.rule} {one.err_code}" for one in found]

    assert update("b.$2", "2.12.4") == ["U-SOURCE-TR 10069"]
    assert update("b.$2", "2.12.5") == ["S-SOURCE-TR-DEST 10146"]
    assert update("b c.$1", "2.12.4") == []


def test_a_cluster_moves_a_stream_or_scales_it() -> None:
    old = {"name": "S", "num_replicas": 3, "placement": {"tags": ["a"]}}
    both = {"name": "S", "num_replicas": 1, "placement": {"tags": ["b"]}}
    found = validate_stream_update(old, both)
    assert ("U-MOVE-SCALE", 10123, True) in [(p.rule, p.err_code, p.needs_server) for p in found]
    moved, scaled = {**both, "num_replicas": 3}, {**old, "num_replicas": 1}
    for new in (moved, scaled, {"name": "S", "num_replicas": 1}):
        assert "U-MOVE-SCALE" not in [one.rule for one in validate_stream_update(old, new)]


def test_max_consumers_could_not_change_once() -> None:
    before, after = {"name": "S"}, {"name": "S", "max_consumers": 5}
    assert validate_stream_update(before, after, "2.12.4")[0].rule == "U-MAX-CONSUMERS"
    assert validate_stream_update(before, after, "2.12.5") == []


@pytest.mark.parametrize(
    ("old", "new", "server", "rules"),
    [
        ({"mirror": {"name": "O"}}, {}, "2.11", ["U-MIRROR"]),
        ({"mirror": {"name": "O"}}, {"subjects": ["a"]}, "2.11", ["U-MIRROR"]),
        ({"mirror": {"name": "O"}}, {}, "2.12", []),
        ({}, {"allow_msg_ttl": True}, "2.11.1", ["U-TTL"]),
        ({"allow_msg_ttl": True}, {}, "2.11.1", ["U-TTL"]),
        ({}, {"allow_msg_ttl": True}, "2.11.2", []),
        ({"allow_msg_ttl": True}, {}, "2.11.2", ["U-TTL-OFF"]),
    ],
    ids=str,
)
def test_rules_for_streams_follow_the_version(
    old: dict[str, Any], new: dict[str, Any], server: str, rules: list[str]
) -> None:
    problems = validate_stream_update({"name": "S", **old}, {"name": "S", **new}, server)
    assert [problem.rule for problem in problems] == rules


@pytest.mark.parametrize(
    ("member", "last"),
    [("mem_storage", "2.14.3"), ("direct", "2.14.5"), ("sourcing", "2.14.5")],
)
def test_members_of_consumers_became_fixed_one_by_one(member: str, last: str) -> None:
    old = {"name": "C", "deliver_subject": "d"}
    new = {**old, member: True}
    assert validate_consumer_update(old, new, server=last) == []
    assert [one.rule for one in validate_consumer_update(old, new)] == ["U-FIXED"]


def test_moving_a_push_consumer_is_for_the_server_to_say() -> None:
    before = {"durable_name": "C", "deliver_subject": "d"}
    problems = validate_consumer_update(before, {**before, "deliver_subject": "e"})
    assert [(problem.rule, problem.needs_server) for problem in problems] == [("C-IN-USE", True)]


def test_effective_stream_has_defaults_and_silent_changes() -> None:
    stored = effective_stream({"name": "S", "subject_delete_marker_ttl": SECOND, "max_age": SECOND})
    assert stored.subjects == ["S"]
    assert stored.duplicate_window == timedelta(seconds=1)
    assert stored.allow_msg_ttl
    assert stored.allow_rollup_hdrs
    assert stored.max_msgs == -1
    assert stored.metadata == {"_nats.level": "5", "_nats.req.level": "1", "_nats.ver": "2.15.1"}
    assert "_nats.ver" not in (effective_stream({"name": "S"}, "2.12").metadata or {})


def test_effective_consumer_has_defaults_of_its_stream() -> None:
    stream = {"name": "S", "consumer_limits": {"max_ack_pending": 7}}
    stored = effective_consumer({"name": "C", "ack_policy": "all"}, stream)
    assert (stored.max_ack_pending, stored.max_deliver, stored.max_waiting) == (7, -1, 512)
    assert stored.ack_wait == timedelta(seconds=30)
    assert stored.inactive_threshold == timedelta(seconds=5)
    assert effective_consumer({**PULL, "backoff": [SECOND]}).ack_wait == timedelta(seconds=1)


def test_a_stored_config_is_stored_as_it_is() -> None:
    stored = effective_stream({"name": "S", "max_msgs": -5, "placement": {}})
    assert effective_stream(stored) == stored
    assert effective_consumer(effective_consumer(PULL)) == effective_consumer(PULL)


def test_texts_with_escapes_come_out_plain() -> None:
    stored = effective_stream(r'{"name":"S","subjects":["a.\u003e"],"description":"\u00fc"}')
    assert (stored.description, stored.subjects) == ("\u00fc", ["a.>"])
    assert type(stored.description) is str


def test_bad_configs_have_no_effect() -> None:
    with pytest.raises(ConfigError, match="max_age") as caught:
        effective_stream({"name": "S", "max_age": 5})
    assert [problem.rule for problem in caught.value.problems] == ["S-AGE-MIN"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ConfigError, match="line 1, column 2: expected a key"):
        effective_stream("{")


def test_plans_say_what_changes() -> None:
    old = encode(effective_stream({"name": "S", "subjects": ["a"], "metadata": {"a": "1"}}))
    new = StreamConfig(name="S", subjects=["a"], max_msgs=10, metadata={"a": "2"})
    plan = plan_stream(old, new)
    assert plan.action == "update"
    assert plan.changes == [Change("max_msgs", -1, 10), Change("metadata.a", "1", "2")]
    assert plan.losses == ["Lowering max_msgs removes messages beyond the newest 10."]


def test_plans_do_nothing_where_only_the_spelling_differs() -> None:
    written = {"name": "S", "max_msgs": 0, "subjects": ["S"], "retention": "limits"}
    assert plan_stream({"name": "S"}, written).action == "nothing"
    stored = effective_consumer(PULL)
    assert plan_consumer(stored, {**PULL, "max_waiting": 0}).action == "nothing"
    paused = {**encode(stored), "pause_until": "2099-01-01T00:00:00Z"}
    assert (
        plan_consumer(paused, ConsumerConfig(durable_name="C", ack_policy="explicit")).action
        == "nothing"
    )


def test_sealing_changes_settings_beyond_the_config() -> None:
    written = {"name": "S", "max_age": SECOND, "sealed": True}
    stored = {**encode(effective_stream({**written, "sealed": False})), "sealed": True}
    sealed = {**stored, "max_age": 0, "discard": "new", "deny_delete": True, "deny_purge": True}
    assert plan_stream(sealed, written).action == "nothing"
    changes = [change.path for change in plan_stream({**stored, "sealed": False}, written).changes]
    assert changes == ["deny_delete", "deny_purge", "discard", "max_age", "sealed"]
    assert plan_stream(sealed, {**written, "description": "x"}).action == "impossible"


def test_the_window_of_a_mirror_does_not_matter() -> None:
    mirror = {"name": "S", "mirror": {"name": "O"}}
    wanted = {**mirror, "duplicate_window": 3600 * SECOND}
    assert plan_stream(mirror, wanted).action == "nothing"
    assert plan_stream(wanted, {"name": "S", "subjects": ["a"]}).changes[0].new == 120 * SECOND


def test_plans_create_what_is_missing() -> None:
    assert plan_stream(None, {"name": "S"}).action == "create"
    assert plan_stream(None, {"name": "S", "max_age": 5}).action == "impossible"
    assert plan_consumer(None, PULL).action == "create"
    assert plan_stream(None, {"name": "S", "num_replicas": 3}).problems[0].needs_server


@pytest.mark.parametrize(
    ("old", "new", "loss"),
    [
        ({}, {"max_bytes": 5}, "5 bytes"),
        ({"max_age": 9 * SECOND}, {"max_age": SECOND}, "messages older than 0:00:01."),
        ({}, {"sealed": True}, "Sealing"),
        ({}, {"allow_msg_schedules": True}, "cannot be turned off again"),
        ({}, {"deny_purge": True}, "cannot be turned off again"),
        ({"mirror": {"name": "O"}}, {}, "stops following"),
        ({}, {"retention": "interest"}, "acknowledged are removed"),
    ],
    ids=str,
)
def test_plans_warn_of_losses(old: dict[str, Any], new: dict[str, Any], loss: str) -> None:
    plan = plan_stream({"name": "S", **old}, {"name": "S", **new})
    assert plan.action == "update"
    assert any(loss in sentence for sentence in plan.losses)
    assert plan_stream({"name": "S", "max_msgs": 5}, {"name": "S", "max_msgs": 9}).losses == []


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ({"filter_subject": "a.1"}, {"filter_subject": "a.2"}, True),
        ({"filter_subject": "a.1"}, {"filter_subjects": ["a.2", "a.1"]}, False),
        ({"filter_subjects": ["a.1", "a.2"]}, {"filter_subject": "a.1"}, True),
        ({"filter_subject": "a.1"}, {}, False),
        ({}, {"filter_subject": "a.1"}, True),
        ({}, {"filter_subject": "a.>"}, False),
    ],
    ids=str,
)
def test_plans_warn_of_interest_that_ends(
    old: dict[str, Any], new: dict[str, Any], lost: bool
) -> None:
    stream = {"name": "S", "subjects": ["a.>"], "retention": "interest"}
    plan = plan_consumer({**PULL, **old}, {**PULL, **new}, stream)
    assert plan.action == "update"
    assert plan.losses == (
        ["Messages that only the old filter matches are removed, as the retention is interest."]
        if lost
        else []
    )
    others = {**stream, "retention": "workqueue"}
    assert plan_consumer({**PULL, **old}, {**PULL, **new}, others).losses == []
    assert plan_consumer({**PULL, **old}, {**PULL, **new}).losses == []


def test_sourced_messages_may_have_any_subject() -> None:
    stream = {"name": "S", "subjects": ["a"], "retention": "interest", "sources": [{"name": "O"}]}
    assert plan_consumer(PULL, {**PULL, "filter_subject": "a"}, stream).losses


def test_unreadable_old_config_is_an_error() -> None:
    with pytest.raises(ValueError, match="old config cannot be read"):
        validate_stream_update("{", {"name": "S"})
