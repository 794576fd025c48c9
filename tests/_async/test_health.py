"""Findings about real streams and consumers."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_async as js
from js_models import ConsumerConfig, StreamConfig
from tests._async.streams import filled

SOON = 0.05


def kinds(health):
    return {(each.kind, each.consumer) for each in health.findings}


async def test_what_is_well_has_no_findings(opened, name):
    async with opened() as jet:
        stream = await filled(jet, name, 3)
        await stream.create_consumer(ConsumerConfig(durable_name="done", deliver_policy="new"))
        health = await jet.health(stream=name, interval=SOON)
        assert (health.findings, health.is_well) == ((), True)
        assert (health.streams, health.consumers) == (1, 1)
        with pytest.raises(js.StreamNotFound):
            await jet.health(stream=f"{name}-not", interval=SOON)


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
        health = await jet.health(stream=name, interval=SOON)
        assert not health.is_well
        found = kinds(health)
        assert ("no_pulls", "alone") in found
        assert {("ack_floor_stuck", "held"), ("ack_pending_full", "held")} <= found
        assert ("redelivering", "again") in found
        [stuck] = [
            each
            for each in health.findings
            if (each.kind, each.consumer) == ("ack_floor_stuck", "held")
        ]
        assert (stuck.figures["seq"], stuck.figures["subject"]) == (1, f"{name}.0")


async def test_a_stream_near_its_limit(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[name], max_msgs=10, discard="new")
        await jet.create_stream(config)
        for _ in range(9):
            await jet.publish(name, b"x")
        health = await jet.health(interval=SOON)
        [finding] = [each for each in health.findings if each.stream == name]
        assert (finding.kind, finding.severity) == ("near_limit", "warning")
        assert finding.figures == {"limit": "max_msgs", "value": 9, "most": 10}
        strict = js.Thresholds(full=1)
        assert (await jet.health(stream=name, interval=SOON, thresholds=strict)).is_well
