"""Reads from a time on, after messages between others were removed."""

from __future__ import annotations

from random import Random

import pytest

from twinstream.models import StreamConfig, Timestamp

pytestmark = pytest.mark.since("2.11")


@pytest.mark.parametrize("storage", ["memory", "file"])
async def test_a_time_has_its_sequence_after_removals(opened, name, storage):
    chance = Random(7)
    async with opened() as jet:
        stream = await jet.create_stream(
            StreamConfig(
                name=name,
                subjects=[f"{name}.>"],
                max_msgs_per_subject=2,
                storage=storage,
                allow_direct=True,
            )
        )
        for _ in range(40):
            await jet.publish(f"{name}.{chance.choice('abc')}", b"x")
        messages = [each async for each in stream.read()]
        for number, message in enumerate(messages):
            later = Timestamp.from_ns(message.time.ns + 1)
            for time, expected in (
                (message.time, messages[number:]),
                (later, messages[number + 1 :]),
            ):
                found = [each.seq async for each in stream.read(start_time=time)]
                assert found == [each.seq for each in expected]
        snapshot = await stream.snapshot(at_time=messages[-1].time)
        assert messages[-1].seq not in {each.seq for each in snapshot.values()}
