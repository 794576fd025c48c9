"""Findings about real streams and consumers."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from js_async.health import Thresholds, check_health
from tests._async.scripted import scripted
from tests._async.streams import filled
from tests.stalls import attempts
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer

SOON = 0.05
CREATED = "2026-01-01T00:00:00Z"
STATE = dict.fromkeys(("messages", "bytes", "first_seq", "last_seq", "consumer_count"), 0)
STREAM = {"config": {"name": "S"}, "created": CREATED, "state": STATE}
LISTED = {"total": 1, "offset": 0, "limit": 256}
HELD = {"consumer_seq": 0, "stream_seq": 0}
STUCK = {
    "stream_name": "S", "name": "c", "created": CREATED, "config": {"ack_policy": "explicit"},
    "delivered": HELD, "ack_floor": HELD, "num_ack_pending": 1,
}  # fmt: skip
NO_LEADER = {"error": {"code": 503, "err_code": 10008, "description": "no leader"}}
OFF = {"error": {"code": 503, "err_code": 10039, "description": "not enabled for account"}}


def kinds(health):
    return {(each.kind, each.consumer_name) for each in health.findings}


async def test_what_is_well_has_no_findings(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        await stream.create_consumer(ConsumerConfig(durable_name="done", deliver_policy="new"))
        health = await check_health(jet, stream_name=name, interval=SOON)
        assert (health.findings, health.is_well) == ((), True)
        assert (health.streams, health.consumers) == (1, 1)
        with pytest.raises(js.StreamNotFound):
            await check_health(jet, stream_name=f"{name}-not", interval=SOON)


async def test_consumers_that_stand_still(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 12)
        await stream.create_consumer(ConsumerConfig(durable_name="alone"))
        held = ConsumerConfig(durable_name="held", max_ack_pending=5)
        await (await stream.create_consumer(held)).fetch(5)
        again = ConsumerConfig(durable_name="again", ack_wait=timedelta(seconds=60))
        consumer = await stream.create_consumer(again)
        for message in await consumer.fetch(12):
            await message.nak()
        await consumer.fetch(12, timeout=10)
        health = await check_health(jet, stream_name=name, interval=SOON)
        assert not health.is_well
        found = kinds(health)
        assert ("no_pulls", "alone") in found
        assert {("ack_floor_stuck", "held"), ("ack_pending_full", "held")} <= found
        assert ("redelivering", "again") in found
        [stuck] = [
            each
            for each in health.findings
            if (each.kind, each.consumer_name) == ("ack_floor_stuck", "held")
        ]
        assert (stuck.figures["seq"], stuck.figures["subject"]) == (1, f"{name}.0")


async def test_a_stream_near_its_limit(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[name], max_msgs=10, discard="new")
        await jet.create_stream(config)
        for _ in range(9):
            await jet.publish(name, b"x")
        health = await check_health(jet, interval=SOON)
        [finding] = [each for each in health.findings if each.stream_name == name]
        assert (finding.kind, finding.severity) == ("near_limit", "warning")
        assert finding.figures == {"limit": "max_msgs", "value": 9, "most": 10}
        strict = Thresholds(full=1)
        assert (await check_health(jet, stream_name=name, interval=SOON, thresholds=strict)).is_well


async def judged(answers, stream):
    """Return the health according to a server that answers only some requests."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            for subject, answer in answers.items():
                if subject in request.line:
                    peer.answer(request, answer)

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=0.5)
        return await check_health(jet, stream_name=stream, interval=SOON)


def places(health):
    return [(each.kind, each.stream_name, each.consumer_name) for each in health.findings]


@pytest.mark.parametrize(("answers", "why"), [({}, "no answer"), ({"S": NO_LEADER}, "no leader")])
async def test_stream_without_information_is_a_finding(answers, why):
    for attempt in attempts(0.5):
        with attempt:
            found = await judged(
                {f"STREAM.INFO.{name}": each for name, each in answers.items()}, "S"
            )
            assert [
                (each.kind, each.stream_name, each.consumer_name) for each in found.findings
            ] == [("no_answer", "S", "")]
            assert why in found.findings[0].text
            assert (found.is_well, found.streams) == (False, 0)


@pytest.mark.parametrize("stream_name", [None, "S"])
async def test_the_timeout_of_a_check_is_no_finding(stream_name):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left()

    async with scripted(script) as connection:
        jet = connection.jetstream(timeout=3600)
        with pytest.raises(js.RequestTimeout):
            await check_health(jet, stream_name=stream_name, interval=0, timeout=SOON)


async def test_what_is_silent_does_not_hide_the_rest():
    streams = LISTED | {"total": 2, "streams": [STREAM, STREAM | {"config": {"name": "T"}}]}
    answers = {
        "STREAM.LIST": streams,
        "CONSUMER.LIST.S": LISTED | {"consumers": [STUCK]},
        "STREAM.MSG.GET.S": NO_LEADER,
    }
    for attempt in attempts(0.5):
        with attempt:
            found = await judged(answers, None)
            assert [
                (each.kind, each.stream_name, each.consumer_name) for each in found.findings
            ] == [
                ("ack_floor_stuck", "S", "c"),
                ("no_answer", "T", ""),
            ]


async def test_health_without_jetstream_raises():
    for attempt in attempts(0.5):
        with attempt, pytest.raises(js.JetStreamNotEnabled):
            await judged({"STREAM.INFO.S": OFF}, "S")
    with pytest.raises(js.RequestTimeout):
        await judged({}, None)
