# Generated from tests/_async/test_exists.py by codegen/twin.py. Edit that file instead.
"""What exists with another configuration: the error names every field that differs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

import js_sync as js
from twinstream.models import ConsumerConfig, ConsumerLimits, Placement, StreamConfig, StreamSource
from tests.conftest import VERSION

SECOND = timedelta(seconds=1)
CONSUMERS = [
    {"ack_wait": 7 * SECOND},
    {"max_deliver": 5},
    {"max_ack_pending": 7},
    {"inactive_threshold": 9 * SECOND},
    {"metadata": {"a": "b"}},
    {"num_replicas": 1},
    {"max_waiting": 7},
    {"deliver_policy": "new"},
    {"replay_policy": "original"},
    {"description": "x"},
    {"filter_subjects": ["a", "b"]},
    {"durable_name": "c"},
]
STREAMS = [
    {"max_age": 100 * SECOND},
    {"duplicate_window": 7 * SECOND},
    {"placement": Placement(tags=[])},
    {"metadata": {"a": "b"}},
    {"first_seq": 5},
    {"consumer_limits": ConsumerLimits(max_ack_pending=5)},
]
ids = [next(iter(each)) for each in CONSUMERS], [next(iter(each)) for each in STREAMS]


def named(error):
    """Return the fields that an error names, once each is shown to be in its text."""
    assert all(str(each) in str(error.value) for each in error.value.differences)
    return [each.field for each in error.value.differences]


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.parametrize("given", CONSUMERS, ids=ids[0])
def test_a_consumer_differs_in_what_one_side_leaves_to_the_server(opened, name, given, left_out):
    (field,) = given
    configs = [ConsumerConfig(name="c", **given), ConsumerConfig(name="c")]
    first, second = configs if left_out else reversed(configs)
    with opened() as jet:
        stream = jet.create_stream(StreamConfig(name=name))
        stream.create_consumer(first)
        with pytest.raises(js.ConsumerExists) as error:
            stream.create_consumer(second)
        assert named(error) == [field]


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.parametrize("given", STREAMS, ids=ids[1])
def test_a_stream_differs_in_what_one_side_leaves_to_the_server(opened, name, given, left_out):
    (field,) = given
    configs = [StreamConfig(name=name, **given), StreamConfig(name=name)]
    first, second = configs if left_out else reversed(configs)
    with opened() as jet:
        jet.create_stream(first)
        with pytest.raises(js.StreamExists) as error:
            jet.create_stream(second)
        assert named(error) == [field]


def test_limits_of_the_stream_are_no_difference(opened, name):
    limits = ConsumerLimits(max_ack_pending=50, inactive_threshold=9 * SECOND)
    with opened() as jet:
        stream = jet.create_stream(StreamConfig(name=name, consumer_limits=limits))
        stream.create_consumer(ConsumerConfig(name="c", max_deliver=5))
        with pytest.raises(js.ConsumerExists) as error:
            stream.create_consumer(ConsumerConfig(name="c"))
        assert named(error) == ["max_deliver"]
        stream.create_consumer(ConsumerConfig(name="d", max_ack_pending=7))
        with pytest.raises(js.ConsumerExists, match="max_ack_pending: wanted 50, is 7") as error:
            stream.create_consumer(ConsumerConfig(name="d"))
        assert named(error) == ["max_ack_pending"]


@pytest.mark.skipif(VERSION != "2.11.11", reason="newer servers give such a consumer its name")
def test_a_durable_of_the_legacy_call_has_no_name(server, name):
    with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = jet.create_stream(StreamConfig(name=name))
        body = {"stream_name": name, "config": {"durable_name": "c", "ack_policy": "explicit"}}
        subject = f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.c"
        connection.request(subject, json.dumps(body).encode())
        with pytest.raises(js.ConsumerExists, match="name: wanted 'c', is None"):
            stream.create_consumer(ConsumerConfig(durable_name="c"))


@pytest.mark.parametrize("hours", [1, -1])
def test_the_start_of_a_mirror_may_be_written_in_any_zone(opened, name, hours):
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    other = start.astimezone(timezone(timedelta(hours=hours)))

    def config(at, **more):
        mirror = StreamSource(name=f"{name}-origin", opt_start_time=at)
        return StreamConfig(name=name, mirror=mirror, **more)

    with opened() as jet:
        stream = jet.create_stream(config(start))
        created = stream.cached_info.created
        stream = jet.create_stream(config(other))
        assert stream.cached_info.created == created
        stream = jet.create_or_update_stream(config(other, max_msgs=5))
        assert (stream.config.max_msgs, stream.cached_info.created) == (5, created)
        with pytest.raises(js.JetStreamError) as refused:
            jet.update_stream(config(other + SECOND))
        assert refused.value.err_code == 10055
        with pytest.raises(js.StreamExists) as error:
            jet.create_stream(config(other + SECOND, max_msgs=5))
        assert named(error) == ["mirror"]
