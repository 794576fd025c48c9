"""Publishing a received message again: which headers are copied, on each supported server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import js_async as js
from js_async.schedules import Schedule, Schedules
from tests._async.flow import eventually
from twinstream.models import ConsumerConfig, StreamConfig, StreamSource, SubjectTransform
from twinstream.records.copied_headers import is_copied

MINE = {"Mine": "1"}
PAST = datetime(2020, 1, 1, tzinfo=UTC)

LEFT_BEHIND = {
    "Nats-Stream-Source": "ORIGIN 7 > > a.b",
    "Nats-Scheduler": "plan.a",
    "Nats-Schedule-Next": "2040-01-01T00:00:00Z",
    "Nats-Counter-Sources": '{"A":{"a":"5"}}',
    "Nats-Pin-Id": "abc",
    "Nats-Msg-Size": "7",
    "Nats-Msg-Id": "1",
    "Nats-Incr": "5",
    "Nats-Required-Api-Level": "99",
    "Nats-Expected-Stream": "OTHER",
    "Nats-Expected-Last-Sequence": "99",
    "Nats-Expected-Last-Msg-Id": "x",
    "Nats-Expected-Last-Subject-Sequence": "99",
    "Nats-Expected-Last-Subject-Sequence-Subject": "a.b",
    "Nats-Batch-Id": "b",
    "Nats-Batch-Sequence": "2",
    "Nats-Batch-Commit": "1",
    "Nats-Trace-Dest": "trace.x",
    "Nats-Trace-Only": "true",
    "Nats-Trace-Hop": "1",
    "Nats-Trace-Origin-Account": "A",
}
"""Each header that stays behind, with a value that a stored message may have."""


async def stored(stream, seq):
    try:
        return await stream.get_message(seq)
    except js.MessageNotFound:
        return None


async def sourced(jet, name):
    """A message of a stream with sources."""
    await jet.create_stream(StreamConfig(name=f"{name}-origin", subjects=[f"{name}.origin"]))
    await jet.publish(f"{name}.origin", b"data", headers=MINE)
    source = StreamSource(name=f"{name}-origin")
    copy = await jet.create_stream(StreamConfig(name=f"{name}-copy", sources=[source]))
    return await eventually(stored, copy, 1)


async def scheduled(jet, name):
    """A message that a schedule published."""
    config = StreamConfig(
        name=f"{name}-plan", subjects=[f"{name}.plan.>"], allow_msg_schedules=True
    )
    stream = await jet.create_stream(config)
    schedules = Schedules(jet, f"{name}-plan")
    moment = Schedule.at(PAST)
    await schedules.add(f"{name}.plan.at", moment, f"{name}.plan.made", b"data", headers=MINE)
    return await eventually(stored, stream, 2)


async def counted(jet, name):
    """A message of a counter that adds the values of another counter."""
    origin, total = f"{name}-origin", f"{name}-total"
    config = StreamConfig(name=origin, subjects=[f"{name}.origin"], allow_msg_counter=True)
    await jet.create_stream(config)
    await jet.publish(f"{name}.origin", b"", headers={**MINE, "Nats-Incr": "5"})
    transform = SubjectTransform(src=f"{name}.origin", dest=f"{name}.total")
    source = StreamSource(name=origin, subject_transforms=[transform])
    config = StreamConfig(name=total, sources=[source], allow_msg_counter=True)
    return await eventually(stored, await jet.create_stream(config), 1)


async def batched(jet, name):
    """A message of an atomic batch, with a message id and a condition."""
    config = StreamConfig(name=f"{name}-batch", subjects=[f"{name}.batch"], allow_atomic=True)
    stream = await jet.create_stream(config)
    async with jet.atomic_batch() as batch:
        await batch.add(f"{name}.batch", b"data", headers=MINE, expected_last_subject_seq=0)
        await batch.commit()
    return await stream.get_message(1)


async def pinned(jet, name):
    """A message that a pinned client received."""
    stream = await jet.create_stream(StreamConfig(name=f"{name}-pin", subjects=[f"{name}.pin"]))
    await jet.publish(f"{name}.pin", b"data", headers=MINE, msg_id="1", expected_last_seq=0)
    config = ConsumerConfig(
        durable_name="c", priority_policy="pinned_client", priority_groups=["g"]
    )
    consumer = await stream.create_consumer(config)
    return await consumer.next(priority=js.Priority(group="g"), timeout=20)


SINCE_2_12 = pytest.mark.since("2.12")


@pytest.mark.parametrize(
    "make",
    [
        sourced,
        pytest.param(scheduled, marks=SINCE_2_12),
        pytest.param(counted, marks=SINCE_2_12),
        pytest.param(batched, marks=SINCE_2_12),
        pinned,
    ],
)
async def test_what_was_received_is_published_again(opened, name, make):
    async with opened() as jet:
        message = await make(jet, name)
        plain = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.plain"]))
        ack = await jet.publish(f"{name}.plain", message.data, headers=message.headers.to_publish())
        copy = await plain.get_message(ack.seq)
        assert (dict(copy.headers), copy.data) == (MINE, message.data)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        pytest.param(sourced, 10227, marks=pytest.mark.since("2.15")),
        pytest.param(scheduled, 10188, marks=SINCE_2_12),
        pytest.param(counted, 10168, marks=SINCE_2_12),
        pytest.param(batched, 10174, marks=SINCE_2_12),
    ],
)
async def test_servers_refuse_all_headers_of_what_was_received(opened, name, make, refusal):
    """The table exists because servers refuse these headers."""
    async with opened() as jet:
        message = await make(jet, name)
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.plain"]))
        with pytest.raises(js.JetStreamError) as caught:
            await jet.publish(f"{name}.plain", message.data, headers=dict(message.headers))
        # A counter with sources meets the refusal of the source's header first.
        assert caught.value.err_code in {refusal, 10227}


@pytest.mark.parametrize("left", LEFT_BEHIND)
async def test_a_header_is_left_behind_alone(opened, name, left):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.a"]))
        given = js.Headers([("A", "1"), (left, LEFT_BEHIND[left]), ("Nats-Marker-Reason", "Purge")])
        copied = given.to_publish()
        ack = await jet.publish(f"{name}.a", b"data", headers=copied)
        found = (await stream.get_message(ack.seq)).headers
        assert list(found.pairs) == [("A", "1"), ("Nats-Marker-Reason", "Purge")]


def test_headers_with_effect_or_content_are_copied():
    kept = ["Mine", "Nats-TTL", "Nats-Rollup", "Nats-Schedule", "Nats-Schedule-Target", "nats-incr"]
    assert all(is_copied(name) for name in kept)
    pairs = [("A", "1"), ("B", "2"), ("A", "3")]
    assert js.Headers(pairs).to_publish().pairs == tuple(pairs)


async def test_a_copy_does_not_move_the_position_of_a_stream_with_sources(server_factory, name):
    """Servers before 2.15 read the position at a start from the last message with the header."""
    server = server_factory()
    async with js.connect(server.url) as nc:
        jet = nc.jetstream()
        far = StreamConfig(name="far", subjects=["far.>"])
        sources = [StreamSource(name="far")]
        await jet.create_stream(far)
        for number in range(5):
            await jet.publish(f"far.{number}", b"")
        other = await jet.create_stream(StreamConfig(name="other", sources=sources))
        message = await eventually(stored, other, 5)
        await jet.delete_stream("far")
        await jet.create_stream(far)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], sources=sources)
        await jet.create_stream(config)
        await jet.publish(f"{name}.copy", b"", headers=message.headers.to_publish())
    server.restart()
    async with js.connect(server.url) as nc:
        jet = nc.jetstream()
        await jet.publish("far.new", b"", msg_id="1")
        found = await eventually(stored, jet.bind_stream(name), 2)
        assert found.subject == "far.new"


@pytest.mark.since("2.15")
async def test_refusal_explains_how_to_copy(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        for header in ("Nats-Stream-Source", "Nats-Scheduler"):
            with pytest.raises(js.JetStreamError) as caught:
                await jet.publish(name, b"", headers={header: LEFT_BEHIND[header]})
            assert "message.headers.to_publish()" in str(caught.value)
