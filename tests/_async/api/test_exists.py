"""Objects that exist with another configuration: the error names every different field."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

import js_async as js
from tests.conftest import VERSION
from twinstream.errors import SubjectOverlap
from twinstream.models import (
    ConsumerConfig,
    ConsumerLimits,
    ObjectStoreConfig,
    Placement,
    StreamConfig,
    StreamSource,
    evolve,
)

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
    """Return the fields that an error names, after a check that its text contains each of them."""
    assert all(str(each) in str(error.value) for each in error.value.differences)
    return [each.field for each in error.value.differences]


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.parametrize("given", CONSUMERS, ids=ids[0])
async def test_a_consumer_differs_in_what_one_side_leaves_to_the_server(
    opened, name, given, left_out
):
    (field,) = given
    configs = [ConsumerConfig(name="c", **given), ConsumerConfig(name="c")]
    first, second = configs if left_out else reversed(configs)
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        await stream.create_consumer(first)
        with pytest.raises(js.ConsumerExists) as error:
            await stream.create_consumer(second)
        assert named(error) == [field]


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.parametrize("given", STREAMS, ids=ids[1])
async def test_a_stream_differs_in_what_one_side_leaves_to_the_server(
    opened, name, given, left_out
):
    (field,) = given
    configs = [StreamConfig(name=name, **given), StreamConfig(name=name)]
    first, second = configs if left_out else reversed(configs)
    async with opened() as jet:
        await jet.create_stream(first)
        with pytest.raises(js.StreamExists) as error:
            await jet.create_stream(second)
        assert named(error) == [field]


async def test_limits_of_the_stream_are_no_difference(opened, name):
    limits = ConsumerLimits(max_ack_pending=50, inactive_threshold=9 * SECOND)
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, consumer_limits=limits))
        await stream.create_consumer(ConsumerConfig(name="c", max_deliver=5))
        with pytest.raises(js.ConsumerExists) as error:
            await stream.create_consumer(ConsumerConfig(name="c"))
        assert named(error) == ["max_deliver"]
        await stream.create_consumer(ConsumerConfig(name="d", max_ack_pending=7))
        with pytest.raises(js.ConsumerExists, match="max_ack_pending: wanted 50, is 7") as error:
            await stream.create_consumer(ConsumerConfig(name="d"))
        assert named(error) == ["max_ack_pending"]


@pytest.mark.skipif(VERSION != "2.11.11", reason="newer servers give such a consumer its name")
async def test_a_durable_of_the_legacy_call_has_no_name(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name))
        body = {"stream_name": name, "config": {"durable_name": "c", "ack_policy": "explicit"}}
        subject = f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.c"
        await connection.request(subject, json.dumps(body).encode())
        with pytest.raises(js.ConsumerExists, match="name: wanted 'c', is unset"):
            await stream.create_consumer(ConsumerConfig(durable_name="c"))


@pytest.mark.parametrize("hours", [1, -1])
async def test_the_start_of_a_mirror_may_be_written_in_any_zone(opened, name, hours):
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    other = start.astimezone(timezone(timedelta(hours=hours)))

    def config(at, **more):
        mirror = StreamSource(name=f"{name}-origin", opt_start_time=at)
        return StreamConfig(name=name, mirror=mirror, **more)

    async with opened() as jet:
        stream = await jet.create_stream(config(start))
        created = stream.cached_info.created
        stream = await jet.create_stream(config(other))
        assert stream.cached_info.created == created
        stream = await jet.create_or_update_stream(config(other, max_msgs=5))
        assert (stream.cached_info.config.max_msgs, stream.cached_info.created) == (5, created)
        with pytest.raises(js.JetStreamError) as refused:
            await jet.update_stream(config(other + SECOND))
        assert refused.value.err_code == 10055
        with pytest.raises(js.StreamExists) as error:
            await jet.create_stream(config(other + SECOND, max_msgs=5))
        assert named(error) == ["mirror"]


async def test_what_exists_names_the_next_call(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, max_age=60 * SECOND))
        with pytest.raises(js.StreamExists) as error:
            await jet.create_stream(StreamConfig(name=name, max_age=90 * SECOND))
        text = str(error.value)
        assert "max_age: wanted 90 s, is 60 s" in text
        assert "; get_stream returns it as it is, create_or_update_stream changes it" in text
        config = ConsumerConfig(name="c", backoff=[SECOND, 2 * SECOND], max_deliver=3)
        await stream.create_consumer(config)
        with pytest.raises(js.ConsumerExists) as error:
            await stream.create_consumer(ConsumerConfig(name="c", max_deliver=3))
        text = str(error.value)
        assert "backoff: wanted unset, is [1 s, 2 s]" in text
        assert "get_consumer (of a push consumer push_messages) returns it as it is" in text
        assert "create_or_update_consumer changes it" in text
        store = f"store-{name}"
        await jet.create_object_store(ObjectStoreConfig(bucket=store))
        with pytest.raises(js.StreamExists) as error:
            await jet.create_object_store(ObjectStoreConfig(bucket=store, max_bytes=1024))
        text = str(error.value)
        assert "; update_object_store changes them, and get_object_store opens it as it is" in text


async def test_another_kind_of_consumer_is_named_by_its_deliver_subject_alone(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        push = ConsumerConfig(durable_name="c", deliver_subject=f"{name}.deliver")
        async with stream.push_messages(push):
            with pytest.raises(js.ConsumerExists) as error:
                await stream.create_consumer(ConsumerConfig(durable_name="c"))
        assert "max_waiting" not in named(error)
        assert f"deliver_subject: wanted unset, is '{name}.deliver'" in str(error.value)


async def test_a_push_consumer_names_no_subject_that_the_caller_did_not_write(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name))
        push = ConsumerConfig(durable_name="c", deliver_subject=f"{name}.deliver")
        async with stream.push_messages(push):
            with pytest.raises(js.ConsumerExists) as error:
                await stream.push_messages(ConsumerConfig(durable_name="c"))
        assert "_INBOX" not in str(error.value)
        (found,) = error.value.differences
        assert str(found) == f"deliver_subject: wanted 'an inbox', is '{name}.deliver'"


async def test_an_overlap_names_the_other_stream_and_its_subject(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.a.>", f"{name}.b"]))
        wanted = StreamConfig(name=f"{name}2", subjects=[f"{name}.c", f"{name}.*.x"])
        hint = f"'{name}.*.x' overlaps '{name}.a.>' of stream {name};"
        with pytest.raises(SubjectOverlap) as error:
            await jet.create_stream(wanted)
        assert hint in str(error.value)
        await jet.create_stream(evolve(wanted, subjects=[f"{name}.c"]))
        for update in (jet.update_stream, jet.create_or_update_stream):
            with pytest.raises(SubjectOverlap) as error:
                await update(wanted)
            assert hint in str(error.value)
            assert error.value.err_code == 10065
