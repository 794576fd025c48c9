# Generated from tests/_async/test_health.py by codegen/twin.py. Edit that file instead.
"""Findings about real streams and consumers."""

from __future__ import annotations

from datetime import timedelta

import pytest

import js_sync as js
from js_models import ConsumerConfig, StreamConfig
from tests._sync.streams import filled

SOON = 0.05


def kinds(health):
    return {(each.kind, each.consumer) for each in health.findings}


def test_what_is_well_has_no_findings(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 3)
        stream.create_consumer(ConsumerConfig(durable_name="done", deliver_policy="new"))
        health = jet.health(stream=name, interval=SOON)
        assert (health.findings, health.is_well) == ((), True)
        assert (health.streams, health.consumers) == (1, 1)
        with pytest.raises(js.StreamNotFound):
            jet.health(stream=f"{name}-not", interval=SOON)


def test_consumers_that_stand_still(opened, name):
    with opened() as jet:
        stream = filled(jet, name, 12)
        stream.create_consumer(ConsumerConfig(durable_name="alone"))
        held = ConsumerConfig(durable_name="held", max_ack_pending=5)
        (stream.create_consumer(held)).fetch(5)
        again = ConsumerConfig(durable_name="again", ack_wait=timedelta(seconds=60))
        consumer = stream.create_consumer(again)
        for message in consumer.fetch(12):
            message.nak()
        consumer.fetch(12, timeout=10)
        health = jet.health(stream=name, interval=SOON)
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


def test_a_stream_near_its_limit(opened, name):
    with opened() as jet:
        config = StreamConfig(name=name, subjects=[name], max_msgs=10, discard="new")
        jet.create_stream(config)
        for _ in range(9):
            jet.publish(name, b"x")
        health = jet.health(interval=SOON)
        [finding] = [each for each in health.findings if each.stream == name]
        assert (finding.kind, finding.severity) == ("near_limit", "warning")
        assert finding.figures == {"limit": "max_msgs", "value": 9, "most": 10}
        strict = js.Thresholds(full=1)
        assert (jet.health(stream=name, interval=SOON, thresholds=strict)).is_well
