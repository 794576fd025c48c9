"""Several filters of which one has `*` where another one has a word (`MIXED_FILTERS`)."""

from __future__ import annotations

import random
import re

import pytest

import js_async as js
from twinstream.core.server_faults.table import MIXED_FILTERS
from twinstream.core.wire.subject_match import mixed
from twinstream.models import ConsumerConfig, StreamConfig

FILTERS = [
    *(["*", "a.*"], ["*.c", "b.c", "a"], ["c.b.*", "*.*"], ["*", "b.*.c", "a.c"]),
    *(["a.a", "*.a.c", "*"], ["b", "*.a", "b.*.>"]),
]


@pytest.mark.parametrize("filters", FILTERS, ids=" ".join)
async def test_a_read_with_mixed_filters_is_complete(opened, name, filters):
    chance = random.Random(str(filters))
    async with opened() as jet:
        # Without `allow_direct`, so that the server selects the messages.
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        subjects = [
            ".".join(chance.choice("abc") for _ in range(chance.choice([1, 2, 3])))
            for _ in range(60)
        ]
        for each in subjects:
            await jet.publish(f"{name}.{each}", b"")
        wanted = [f"{name}.{each}" for each in filters]
        read = [message.seq async for message in stream.read(subjects=wanted)]
        expression = "|".join(
            re.escape(each).replace(r"\*", "[^.]+").replace(">", ".+") for each in filters
        )
        assert read == [
            seq for seq, each in enumerate(subjects, 1) if re.fullmatch(expression, each)
        ]


async def test_a_consumer_with_mixed_filters_gets_all_or_is_refused(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        config = ConsumerConfig(durable_name="c", filter_subjects=[f"{name}.*", f"{name}.a.*"])
        if MIXED_FILTERS.affects(connection.server_info.version_numbers):
            with pytest.raises(js.Unsupported, match="one consumer for each"):
                await stream.create_consumer(config)
            with pytest.raises(js.Unsupported, match="one consumer for each"):
                await jet.create_or_update_consumer(name, config)
            return
        consumer = await stream.create_consumer(config)
        for number in range(30):
            await jet.publish(f"{name}.{'a.' * (number % 2)}{number % 5}", b"")
        got = await consumer.fetch(30, timeout=30)
        assert [message.seq for message in got] == list(range(1, 31))


@pytest.mark.parametrize("filters", FILTERS, ids=" ".join)
def test_mixed_filters_are_recognized(filters):
    assert mixed(filters)


@pytest.mark.parametrize(
    "filters", [["a", "b"], ["a.*", "b.c"], ["*.a", "*.b"], ["a.>", "b"], ["*"]], ids=" ".join
)
def test_other_filters_are_not_mixed(filters):
    assert not mixed(filters)
