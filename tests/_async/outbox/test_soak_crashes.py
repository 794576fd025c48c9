"""Crashes at every step: each event is stored once and none is lost, in both modes."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta

import pytest

import js_async as js
from js_async.exactly_once import Processing
from js_async.outbox import OutboxRelay, SqliteOutbox
from tests._async.crashing import Crashed, Crashing, CrashingStore, Fate
from tests._async.flow import eventually
from tests._async.streams import settled
from tests.inside import session_of
from tests.soak import rounds, state
from twinstream.models import ConsumerConfig, StreamConfig

BY = pytest.mark.parametrize("by", ["subject", "id"])
# Events of a round: two of one key, and one without.
KEYS = ("a", "a", None)
RESULTS = 2
# By subject nothing may depend on the window: as short as the server takes it.
WINDOWS = {"subject": timedelta(seconds=0.1), "id": timedelta(seconds=20)}
# More than the steps of a round, so that some come through.
STEPS = 24


async def held(stream):
    """Return how often a stream has each message id, and the sequences of each key in order."""
    counts, order = Counter(), []
    info = await stream.info()
    if info.state.messages:
        reader = stream.ordered(headers_only=True)
        async with reader as messages:
            async for message in messages:
                counts[message.headers["Nats-Msg-Id"]] += 1
                order.append(message)
                if message.metadata.stream_seq == info.state.last_seq:
                    break
    return counts, order


@BY
async def test_an_outbox_through_crashes(server, name, tmp_path, by):
    crashes, chance = rounds(40, 1000), random.Random(17)
    path = str(tmp_path / "app.db")
    outbox = SqliteOutbox(path)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], duplicate_window=WINDOWS[by])
        stream = await jet.create_stream(config)
        ids, died, lives = [], 0, 0
        with closing(sqlite3.connect(path)) as db:
            outbox.create(db)
            while died < crashes:
                with db:
                    for key in KEYS:
                        subject = f"{name}.{key}.{{id}}"
                        ids.append(outbox.add(db, subject, b"x", key=key).id)
                # The first lives go through every step in turn, later ones anywhere.
                step = lives // 2 + 1 if lives < 2 * STEPS else chance.randrange(1, STEPS)
                fate = Fate(step, after=bool(lives % 2))
                lives += 1
                await one_life(connection, outbox, name, by, fate)
                died += fate.dead
        await OutboxRelay(jet, outbox, name, by=by).flush(timeout=60)
        counts, order = await held(stream)
        doubles = {id: count for id, count in counts.items() if count > 1}
        lost = set(ids) - set(counts)
        state(
            f"outbox by {by}: {len(ids)} events, {died} crashes in {lives} lives,"
            f" {len(lost)} lost, {len(doubles)} twice"
        )
        assert (lost, doubles, outbox.waiting()) == (set(), {}, 0)
        keyed = [m.headers["Nats-Msg-Id"] for m in order if m.subject.startswith(f"{name}.a.")]
        assert keyed == [id for number, id in enumerate(ids) if KEYS[number % 3]]


async def one_life(connection, outbox, name, by, fate):
    jet = js.JetStream(Crashing(session_of(connection), fate), timeout=20)
    relay = OutboxRelay(jet, CrashingStore(outbox, fate), name, by=by)
    try:
        await relay.flush(timeout=60)
    except Crashed:
        assert fate.dead


@BY
async def test_processing_through_crashes(server, name, by):
    crashes, chance = rounds(30, 1000), random.Random(19)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        # Shorter than ack_wait: what comes again is beyond the window, so it has to be looked up.
        results = await jet.create_stream(
            StreamConfig(
                name=f"{name}-OUT",
                subjects=[f"{name}-out.>"],
                duplicate_window=timedelta(seconds=2),
            )
        )
        consumer = await stream.create_consumer(
            ConsumerConfig(
                durable_name="w",
                ack_policy="explicit",
                ack_wait=timedelta(seconds=2.5),
                max_ack_pending=10_000,
            )
        )

        async def double(message):
            subject = f"{name}-out.{{id}}"
            return [js.PublishRequest(subject=subject, data=message.data) for _ in range(RESULTS)]

        died, lives, count = 0, 0, 0
        while died < crashes:
            for _ in range(2):
                await jet.publish(f"{name}.{count}", b"%d" % count)
                count += 1
            step = lives // 2 + 1 if lives < 2 * STEPS else chance.randrange(1, STEPS)
            fate = Fate(step, after=bool(lives % 2))
            lives += 1
            await one_worker(connection, name, results, by, double, fate)
            died += fate.dead
        work = Processing(
            jet,
            name,
            "w",
            double,
            into=results.name,
            by=by,
            concurrency=8,
            timeout=0.5,
        )
        async with work:
            await eventually(settled, consumer, count, patience=rounds(50, 600))
        counts, _ = await held(results)
        doubles = {id: number for id, number in counts.items() if number > 1}
        lost = count * RESULTS - len(counts)
        state(
            f"processing by {by}: {count} messages, {died} crashes in {lives} lives,"
            f" {lost} results lost, {len(doubles)} twice"
        )
        assert (lost, doubles) == (0, {})


async def one_worker(connection, name, results, by, handler, fate):
    """Process messages until the crash, or until two messages are done."""
    jet = js.JetStream(Crashing(session_of(connection), fate), timeout=20)
    try:
        work = Processing(
            jet, name, "w", handler, into=results.name, by=by, stop_after=2, timeout=0.5
        )
        await work.start()
        await work.wait(timeout=60)
    except Crashed:
        assert fate.dead
