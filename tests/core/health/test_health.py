"""Findings: each kind from the figures of a server, and none if there is no problem."""

from __future__ import annotations

from typing import Any

import pytest

from twinstream.core.health.health import (
    THRESHOLDS,
    Finding,
    Health,
    Sample,
    Thresholds,
    judge,
    stuck,
)
from twinstream.errors import BadArgument
from twinstream.models import ConsumerInfo, StreamInfo, decode

AT = "2026-01-02T03:04:05Z"


def stream(state: dict[str, Any] | None = None, **more: Any) -> StreamInfo:
    figures = {"messages": 10, "bytes": 10, "first_seq": 1, "last_seq": 10, "consumer_count": 1}
    config = {"name": "S", **more.pop("config", {})}
    members = {"config": config, "created": AT, "state": figures | (state or {}), **more}
    return decode(members, StreamInfo)


def consumer(*, floor: int = 0, delivered: int = 0, **more: Any) -> ConsumerInfo:
    config = {"ack_policy": "explicit", "max_ack_pending": 100, **more.pop("config", {})}
    members = {
        "stream_name": "S", "name": "c", "created": AT, "config": config,
        "ack_floor": {"consumer_seq": floor, "stream_seq": floor},
        "delivered": {"consumer_seq": delivered, "stream_seq": delivered},
        "num_waiting": 1,
    }  # fmt: skip
    return decode(members | more, ConsumerInfo)


def sample(info: StreamInfo | None, of: ConsumerInfo | None, **more: Any) -> Sample:
    return Sample(
        streams={"S": info} if info else {}, consumers={("S", "c"): of} if of else {}, **more
    )


def judged(then: ConsumerInfo, now: ConsumerInfo, subjects: Any = None) -> Health:
    return judge(sample(None, then), sample(None, now), 2.0, THRESHOLDS, subjects)


def kinds(found: Health) -> list[tuple[str, str]]:
    return [(each.kind, each.severity) for each in found.findings]


def of_stream(info: StreamInfo, thresholds: Thresholds = THRESHOLDS) -> list[Finding]:
    now = sample(info, None)
    return list(judge(now, now, 2.0, thresholds).findings)


def test_nothing_is_found_where_all_is_well() -> None:
    cluster = {"leader": "n1", "replicas": [{"name": "n2", "current": True, "lag": 3}]}
    now = sample(stream(cluster=cluster), consumer(cluster=cluster, num_pending=5))
    found = judge(now, now, 2.0, THRESHOLDS)
    assert (found.findings, found.is_well, found.streams, found.consumers) == ((), True, 1, 1)
    bare = decode({"stream_name": "S", "name": "c", "created": AT}, ConsumerInfo)
    assert judged(bare, bare).is_well


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        # Somebody pulls, and it is the lag that grows.
        ({"num_pending": 5}, {"num_pending": 8, "delivered": 3}, [("lag_growing", "warning")]),
        ({"num_pending": 8}, {"num_pending": 5}, []),
        # Nobody pulls.
        ({"num_waiting": 0}, {"num_waiting": 0, "num_pending": 5}, [("no_pulls", "error")]),
        ({"num_waiting": 0}, {"num_waiting": 0}, []),
        # Between two pulls: something was delivered meanwhile.
        ({"num_waiting": 0, "num_pending": 5},
         {"num_waiting": 0, "num_pending": 5, "delivered": 1}, []),
        ({"num_waiting": 0, "config": {"deliver_subject": "d"}},
         {"num_waiting": 0, "num_pending": 5, "config": {"deliver_subject": "d"}},
         [("lag_growing", "warning")]),
        ({"num_waiting": 0, "paused": True}, {"num_waiting": 0, "num_pending": 5, "paused": True},
         [("paused", "warning")]),
        ({"num_pending": 1, "paused": True}, {"num_pending": 5, "paused": True},
         [("paused", "warning")]),
        # The floor does not move while something is held.
        ({"floor": 3, "num_ack_pending": 2}, {"floor": 3, "num_ack_pending": 4},
         [("ack_floor_stuck", "error")]),
        ({"floor": 3, "num_ack_pending": 2}, {"floor": 3, "num_ack_pending": 4, "delivered": 9},
         [("ack_floor_stuck", "warning")]),
        ({"floor": 3, "num_ack_pending": 2}, {"floor": 4, "num_ack_pending": 4}, []),
        ({"floor": 3, "num_ack_pending": 0}, {"floor": 3, "num_ack_pending": 4}, []),
        # Messages come again and again.
        ({}, {"num_redelivered": 10, "num_ack_pending": 20}, [("redelivering", "warning")]),
        ({}, {"num_redelivered": 9, "num_ack_pending": 9}, []),
        ({}, {"num_redelivered": 10, "num_ack_pending": 21}, []),
        # No more may be unacknowledged.
        ({"num_pending": 1}, {"num_ack_pending": 100, "num_pending": 1},
         [("ack_pending_full", "error")]),
        ({}, {"num_ack_pending": 100}, []),
    ],
)  # fmt: skip
def test_what_figures_of_a_consumer_say(then: Any, now: Any, found: Any) -> None:
    assert kinds(judged(consumer(**then), consumer(**now))) == found


def test_recreated_consumer_is_not_compared() -> None:
    then = consumer(floor=3, num_ack_pending=2, created="2026-01-01T00:00:00Z")
    now = consumer(floor=3, num_ack_pending=2)
    assert judged(then, now).is_well
    assert list(stuck(sample(None, then), sample(None, now))) == []
    assert list(stuck(sample(None, None), sample(None, now))) == []
    assert judge(sample(None, None), sample(None, now), 1, THRESHOLDS).is_well


def test_the_message_at_which_a_consumer_is_stuck_is_named() -> None:
    now = consumer(floor=3, num_ack_pending=2)
    assert list(stuck(sample(None, now), sample(None, now))) == [(("S", "c"), 4)]
    [finding] = judged(now, now, {("S", "c"): "s.poison"}).findings
    assert finding.figures == {"seq": 4, "subject": "s.poison", "unacknowledged": 2}
    assert "4 (s.poison)" in finding.text
    assert finding.advice


@pytest.mark.parametrize(
    ("config", "state", "severity"),
    [
        ({"max_bytes": 100, "discard": "new"}, {"bytes": 90}, "warning"),
        ({"max_bytes": 100, "discard": "new"}, {"bytes": 100}, "error"),
        ({"max_bytes": 100, "discard": "new"}, {"bytes": 89}, None),
        ({"max_bytes": 100, "discard": "old"}, {"bytes": 100}, None),
        ({"max_msgs": 10, "discard": "new"}, {"messages": 10}, "error"),
        ({"max_msgs": -1, "discard": "new"}, {"messages": 10}, None),
        ({"max_consumers": 2}, {"consumer_count": 2}, "error"),
    ],
)
def test_limits_that_are_near(config: Any, state: Any, severity: str | None) -> None:
    found = of_stream(stream(state, config=config))
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all(each.kind == "near_limit" for each in found)


def test_replicas_and_leaders() -> None:
    peers = [
        {"name": "n2", "offline": True, "lag": 9999},
        {"name": "n3", "current": False, "lag": 1001},
    ]
    led = of_stream(stream(cluster={"leader": "n1", "replicas": peers}))
    assert [(each.kind, each.figures["server"]) for each in led] == [
        ("replica_offline", "n2"), ("replica_behind", "n3"),
    ]  # fmt: skip
    headless = of_stream(stream(cluster={"replicas": [{"name": "n2"}]}))
    assert [each.kind for each in headless] == ["no_leader"]
    assert of_stream(stream(cluster={"name": "C"})) == []


def test_what_does_not_answer_or_cannot_run() -> None:
    missing = {("S", "c"): "", ("S", "d"): "no answer in time"}
    now = sample(None, None, missing=missing, offline={("T", ""): "needs level 9"})
    found = judge(now, now, 1, THRESHOLDS).findings
    assert [(each.kind, each.stream_name, each.consumer_name) for each in found] == [
        ("no_answer", "S", "c"), ("no_answer", "S", "d"), ("offline", "T", ""),
    ]  # fmt: skip
    assert found[0].text == "it exists but is silent"
    assert found[1].text == "no information: no answer in time"


def test_worst_finding_comes_first_and_thresholds_are_checked() -> None:
    then = consumer(num_pending=1)
    now = consumer(num_pending=2, num_ack_pending=100, num_redelivered=60)
    found = judged(then, now)
    assert [each.severity for each in found.findings] == ["error", "warning", "warning"]
    assert not found.is_well
    assert not of_stream(stream({"bytes": 95}, config={"max_bytes": 100, "discard": "new"}),
                         Thresholds(full=1))  # fmt: skip
    for wrong in ({"full": 0}, {"redelivered": 1.5}):
        with pytest.raises(BadArgument, match="must be above 0"):
            Thresholds(**wrong)


def test_a_source_or_mirror_that_cannot_copy_is_found() -> None:
    error = {"code": 404, "err_code": 10059, "description": "stream not found"}
    well, ill = {"name": "A", "lag": 0, "active": 1}, {"name": "B", "lag": 0, "active": -1}
    (one,) = of_stream(stream(sources=[well, ill | {"error": error}]))
    assert (one.kind, one.severity, one.figures["source"]) == ("source_failing", "error", "B")
    assert one.text == "it copies nothing from B: stream not found"
    (one,) = of_stream(stream(mirror=ill | {"error": {"code": 500}}))
    assert one.figures == {"source": "B", "reason": "the server gives no reason"}
    assert of_stream(stream(sources=[well, ill], mirror=well)) == []


@pytest.mark.parametrize(
    ("config", "filters", "missed"),
    [
        ({"subjects": ["orders.*"]}, {"filter_subject": "order.new"}, "order.new"),
        ({"subjects": ["orders.*"]}, {"filter_subject": "orders.*.x"}, "orders.*.x"),
        ({"subjects": ["a", "b.>"]}, {"filter_subjects": ["c", "b.x", "d.>"]}, "c, d.>"),
        ({"subjects": ["orders.*"]}, {"filter_subject": "*.new"}, ""),
        ({"subjects": ["orders.*"]}, {}, ""),
        ({"subjects": [], "mirror": {"name": "O"}}, {"filter_subject": "x"}, ""),
        ({"subjects": ["a"], "sources": [{"name": "O"}]}, {"filter_subject": "x"}, ""),
        ({"subjects": ["a"], "subject_transform": {"src": "a", "dest": "x"}},
         {"filter_subject": "x"}, ""),
    ],
)  # fmt: skip
def test_a_filter_outside_of_the_subjects_is_found(
    config: dict[str, Any], filters: dict[str, Any], missed: str
) -> None:
    now = sample(stream(config=config), consumer(config=filters))
    found = judge(now, now, 2.0, THRESHOLDS).findings
    assert [each.figures["filters"] for each in found if each.kind == "filter_outside"] == (
        [missed] if missed else []
    )


def test_a_filter_of_a_consumer_without_its_stream_is_not_judged() -> None:
    now = sample(None, consumer(config={"filter_subject": "x"}))
    assert judge(now, now, 2.0, THRESHOLDS).findings == ()
