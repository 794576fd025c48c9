"""Message ids of results, and the settings that a consumer needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tuned import Tuned
from twinstream.core.exactly_once.processing import (
    InputStream,
    OwnIds,
    ProcessReport,
    delays,
    processing_gaps,
    results_of,
)
from twinstream.errors import BadArgument
from twinstream.models import ConsumerConfig, Timestamp
from twinstream.records.publish_request import PublishRequest

STREAM = InputStream("p", "IN", Timestamp.from_ns(62))
GOOD = {"durable_name": "c", "ack_policy": "explicit"}


def test_results_are_known_by_where_they_come_from() -> None:
    assert STREAM.result_id(7, 1) == "p-IN-10-7-1"
    one = PublishRequest(subject="out.{id}", data=b"x", headers={"A": "b"}, ttl=5)
    (made,) = results_of(one, STREAM, 7, "OUT")
    assert (made.subject, made.msg_id, made.expected_stream) == (
        "out.p-IN-10-7-0",
        "p-IN-10-7-0",
        "OUT",
    )
    assert (made.data, made.headers, made.ttl) == (b"x", {"A": "b"}, 5)
    several = results_of((PublishRequest(subject="a") for _ in range(2)), STREAM, 7, "OUT")
    assert [each.msg_id for each in several] == ["p-IN-10-7-0", "p-IN-10-7-1"]
    assert results_of(None, STREAM, 7, "OUT") == []


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (5, "got int"),
        (["x"], "got str"),
        (PublishRequest(subject="a", msg_id="x"), "subject, data, headers and ttl only"),
        (PublishRequest(subject="a", expected_last_seq=1), "only"),
    ],
)
def test_what_is_no_result(returned: object, words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        results_of(returned, STREAM, 1, "OUT")


def test_a_name_that_no_subject_can_hold() -> None:
    STREAM.check()
    with pytest.raises(BadArgument):
        InputStream("a b", "IN", STREAM.created).check()


@pytest.mark.parametrize(
    ("settings", "gaps"),
    [
        (GOOD, []),
        (GOOD | {"max_deliver": -1}, []),
        (GOOD | {"max_deliver": 5}, ["max_deliver"]),
        (GOOD | {"mem_storage": True}, ["mem_storage"]),
        ({"durable_name": "c"}, ["ack_policy"]),
        ({"ack_policy": "all"}, ["ack_policy", "durable_name"]),
    ],
)
def test_what_a_consumer_must_promise(settings: dict[str, Any], gaps: list[str]) -> None:
    found = processing_gaps(ConsumerConfig(**settings))
    assert [gap.setting for gap in found] == gaps


def test_delays_are_one_number_or_several() -> None:
    assert delays(2) == (2.0,)
    assert delays([1, 0.5]) == (1.0, 0.5)
    for bad in ([], [-1]):
        with pytest.raises(BadArgument):
            delays(bad)


def test_reports_read_well() -> None:
    error = ValueError("no")
    assert str(ProcessReport(subject="s", seq=3, error=error, delay=5)) == (
        "message 3 (s) was not processed, it is tried again: ValueError('no')"
    )
    assert str(ProcessReport(subject="s", seq=3, error=error, rejected=True)) == (
        "message 3 (s) is rejected: ValueError('no')"
    )


def test_requested_results_are_kept(tuned: Tuned) -> None:
    tuned("cached results", 2)
    ids = [STREAM.result_id(seq, 0) for seq in range(1, 5)]
    own = OwnIds(STREAM, {ids[3]})
    assert [own.select(each) for each in ["foreign", *ids[:2]]] == [False, True, True]
    assert own.is_whole
    assert [own.select(each) for each in ids[2:]] == [False, True]
    assert not own.is_whole


@pytest.mark.parametrize("rest", ["", "1", "1-", "a-1", "1-1-1", "1" * 21 + "-1", "1-\u0661"])
def test_ids_of_strangers_are_not_cached(rest: str) -> None:
    own = OwnIds(STREAM, ())
    assert not own.select(STREAM.prefix + rest)
    assert not own.select(STREAM.prefix + "1" * 60_000 + "-1")
    assert own.select(STREAM.result_id(2**64 - 1, 10**9))
