"""Differences between configurations."""

from __future__ import annotations

from datetime import timedelta

from twinstream.errors import ConsumerExists
from twinstream.models import ConsumerConfig, Placement, StreamConfig, decode
from twinstream.records.difference import differences

SECOND = timedelta(seconds=1)


def test_what_differs_is_named_whether_it_was_given_or_left_to_the_server() -> None:
    actual = ConsumerConfig(name="c", ack_wait=30 * SECOND, max_deliver=5)
    given = ConsumerConfig(name="c", max_deliver=3)
    wanted = ConsumerConfig(name="c", ack_wait=30 * SECOND, max_deliver=3)
    assert list(map(str, differences(wanted, actual, given))) == ["max_deliver: wanted 3, is 5"]
    assert differences(actual, actual, given) == ()
    [beyond] = differences(ConsumerConfig(), ConsumerConfig(filter_subject="a"), ConsumerConfig())
    assert (beyond.field, beyond.wanted, beyond.actual) == ("filter_subject", None, "a")
    [off] = differences(ConsumerConfig(ack_wait=SECOND), ConsumerConfig(ack_wait=0 * SECOND), given)
    assert str(off) == "ack_wait: wanted 1 s, is 0 s (off)"
    given = ConsumerConfig(headers_only=False, filter_subject="")
    assert differences(given, ConsumerConfig(), given) == ()


def test_defaults_that_limits_change_are_named_where_nothing_else_is() -> None:
    wanted = ConsumerConfig(max_ack_pending=1000, max_deliver=-1)
    actual = ConsumerConfig(max_ack_pending=7, max_deliver=5)
    assert [each.field for each in differences(wanted, actual, ConsumerConfig())] == ["max_deliver"]
    given = ConsumerConfig(max_ack_pending=1000)
    assert len(differences(wanted, actual, given)) == 2
    actual = ConsumerConfig(max_ack_pending=7, max_deliver=-1)
    [found] = differences(wanted, actual, ConsumerConfig())
    assert str(found) == "max_ack_pending: wanted 1000, is 7"


def test_a_field_of_a_newer_server_is_named_where_nothing_else_is() -> None:
    wanted = ConsumerConfig(max_deliver=-1)
    newer = decode({"max_deliver": 5, "brand_new": 1}, ConsumerConfig)
    assert [each.field for each in differences(wanted, newer, wanted)] == ["max_deliver"]
    newer = decode({"max_deliver": -1, "brand_new": 1}, ConsumerConfig)
    assert [each.field for each in differences(wanted, newer, wanted)] == ["brand_new"]


def test_what_means_the_same_is_named_where_nothing_else_is() -> None:
    plain = StreamConfig(name="S")
    [found] = differences(plain, StreamConfig(name="S", placement=Placement()), plain)
    assert str(found) == "placement: wanted unset, is {}"
    given = decode(
        {"mirror": {"name": "A", "opt_start_time": "2026-01-01T00:00:00+00:00"}}, StreamConfig
    )
    stored = decode(
        {"mirror": {"name": "A", "opt_start_time": "2026-01-01T00:00:00Z"}}, StreamConfig
    )
    [found] = differences(stored, stored, given)
    assert "+00:00" in str(found)
    assert differences(stored, stored, stored) == ()


def test_metadata_of_the_server_is_no_difference() -> None:
    actual = ConsumerConfig(metadata={"a": "1", "_nats.level": "2"})
    wanted = ConsumerConfig(metadata={"a": "1"})
    assert differences(wanted, actual, wanted) == ()
    wanted = ConsumerConfig(metadata={"a": "2"})
    [other] = differences(wanted, actual, wanted)
    assert str(other) == "metadata: wanted {'a': '2'}, is {'a': '1'}"
    assert len(differences(wanted, ConsumerConfig(), wanted)) == 1


def test_an_error_with_differences_names_them() -> None:
    error = ConsumerExists("consumer already exists", code=400, err_code=10148)
    wanted = ConsumerConfig(max_deliver=3)
    found = differences(wanted, ConsumerConfig(max_deliver=5), wanted)
    told = error.with_differences(found)
    assert "max_deliver: wanted 3, is 5" in str(told)
    assert (told.err_code, told.differences) == (10148, found)
    assert "no requested field" in str(error.with_differences(()))
