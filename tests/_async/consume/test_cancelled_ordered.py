"""Ordered reads that are cancelled at any of their suspensions."""

from __future__ import annotations

import asyncio

import pytest

import js_async as js
import js_async.publish.publisher
from tests._async.cancelling import WAITING, WAYS, cancelled_at
from twinstream.models import StreamConfig


@WAYS
async def test_ordered_read_continues_after_a_cancelled_reset(server, way) -> None:
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        subject = f"reset.{'waiting' if way == WAITING else 'ready'}"
        stream = await jet.create_stream(
            StreamConfig(name=subject.replace(".", "-"), subjects=[subject])
        )
        await jet.publish(subject)
        async with stream.ordered() as messages:
            await messages.next(timeout=20)
            # What arrives with the end of the consumer depends on the server, so some more points.
            for stop_at in range(1, 12):
                for consumer in [each async for each in stream.consumer_names()]:
                    await jet.delete_consumer(stream.name, consumer)
                await jet.publish(subject)
                _, cancelled = await cancelled_at(messages.next(timeout=60), stop_at, way)
                if cancelled:
                    await messages.next(timeout=20)
                assert messages.position == stop_at + 1
        assert messages.resets >= 11


@WAYS
async def test_an_ordered_read_that_is_cancelled_while_it_begins_leaves_no_consumer(server, way):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        subject = f"begun.{'waiting' if way == WAITING else 'ready'}"
        name = subject.replace(".", "-")
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[subject]))
        await jet.publish(subject)
        await jet.publish(subject)
        cuts = 0
        for stop_at in range(1, 12):
            for goes_on in (False, True):
                messages = stream.ordered()
                _, cancelled = await cancelled_at(messages.next(timeout=60), stop_at, way)
                cuts += cancelled
                if goes_on:
                    seq = (await messages.next(timeout=60)).metadata.stream_seq
                    assert seq == (1 if cancelled else 2)
                await messages.close()
                assert [each async for each in stream.consumer_names()] == []
        assert cuts > 2


async def test_a_cancelled_fetch_of_an_ordered_read_loses_nothing(server):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name="REWOUND", subjects=["rewound"]))
        for options, first in (({}, 1), ({"deliver_policy": "new"}, 4)):
            async with stream.ordered(stop_after=4, **options) as messages:
                fetching = asyncio.create_task(messages.fetch(5, timeout=60))
                while messages.consumer_name is None:
                    await asyncio.sleep(0)
                for _ in range(3):
                    await jet.publish("rewound")
                while messages.position < first + 2:
                    await asyncio.sleep(0)
                fetching.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await fetching
                assert messages.position == first - 1
                batch = await messages.fetch(3, timeout=20)
                assert [each.metadata.stream_seq for each in batch] == [first, first + 1, first + 2]
                assert not messages.is_ended
        assert [each async for each in stream.consumer_names()] == []
