"""Ordered reads of streams that remove messages, with cuts, deletions and leader changes.

A writer overwrites a few hundred subjects as fast as it can, and purges some. Meanwhile reads of
each kind are disturbed. Each message must be delivered once and in order, and every message that
still exists at the end must have been delivered. The test is short by default and long with `make
soak`.
"""

from __future__ import annotations

import random
from contextlib import ExitStack, suppress
from functools import partial

import pytest

import js_async as js
from tests._async.flow import eventually, together
from tests._async.leaders import step_down
from tests.soak import rounds, state
from twinstream.core.client.server_pool import ServerPool
from twinstream.models import StreamConfig
from twinstream.testing import Proxy

PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.2, attempts=-1)
SUBJECTS = 300
# A deletion may be lost in the trouble. Then the server deletes the consumer after this time.
LEFT = 30
# A read that needs a heartbeat to go on fails: none comes for longer than it waits.
DEAF = {"expires": 120, "heartbeat": 30, "inactive_threshold": LEFT}
ALERT = {"expires": 2, "heartbeat": 0.5, "inactive_threshold": LEFT}


async def has_no_consumers(stream):
    return not [each async for each in stream.consumer_names()]


class Writer:
    """A writer that overwrites subjects of a stream until it is stopped."""

    def __init__(self, jet, name):
        self.stream = jet.bind_stream(name)
        self._jet = jet
        self._name = name
        self._chance = random.Random(27)
        self.ended = False
        self.last_seq = 0

    async def fill(self):
        """Store one message of each subject."""
        await self.publish(range(SUBJECTS))

    async def run(self):
        while not self.ended:
            await self.publish(self._chance.choices(range(SUBJECTS), k=200))
            for number in self._chance.sample(range(SUBJECTS), 3):
                with suppress(js.RequestTimeout, js.NoResponders, js.JetStreamError):
                    await self.stream.purge(subject=f"{self._name}.{number}")

    async def publish(self, numbers):
        """Store a message of each of these subjects."""
        requests = [(f"{self._name}.{number}", b"x" * 200) for number in numbers]
        outcomes = self._jet.publish_many(requests, window=50, timeout=1, raise_failures=False)
        async for outcome in outcomes:
            if not isinstance(outcome, js.PublishFailure):
                self.last_seq = max(self.last_seq, outcome.seq)


class Reader:
    """A reader that takes messages until it has all up to a sequence, and records them."""

    def __init__(self, stream, writer, messages):
        self.stream = stream
        self.writer = writer
        self.messages = messages
        self.seqs = []
        self.subjects = {}
        # The last sequence of the stream when the first messages had come, and in the end.
        self.after = self.ends_at = None

    async def run(self):
        async with self.messages:
            while self.ends_at is None or self.messages.scanned < self.ends_at:
                await self._take("first" if self.ends_at is None else "none")

    async def _take(self, wait):
        batch = await self.messages.fetch(50, timeout=20, wait=wait)
        # There is something to read all the time.
        assert batch or self.writer.ended, f"nothing came after {self.messages.position}"
        for message in batch:
            self.seqs.append(message.metadata.stream_seq)
            self.subjects[message.metadata.stream_seq] = message.subject
        if self.after is None:
            self.after = (await self.stream.info()).state.last_seq

    def check(self, what, stored):
        """Compare the received messages with those that are stored at the end."""
        seen = set(self.seqs)
        last = {subject: seq for seq, subject in stored.items()}
        due = {seq for seq, each in stored.items() if seq > self.after or last[each] == seq}
        state(
            f"{what}: {len(seen)} messages, {self.messages.resets} new consumers, {len(due)} due,"
            f" {len(due - seen)} missing"
        )
        assert self.seqs == sorted(seen)
        assert due <= seen
        assert all(stored.get(seq, each) == each for seq, each in self.subjects.items())


async def disturbed(stream, writer, readers, trouble, count):
    """Run writer and readers until `count` failures were caused; return the stored messages."""

    async def chaos():
        for number in range(count):
            seen = [len(reader.seqs) for reader in readers]
            await eventually(partial(moved_on, readers, seen), patience=60)
            await trouble(number)
        writer.ended = True

    async def write():
        await writer.run()
        ends_at = await eventually(last_seq_of, writer.stream)
        for reader in readers:
            reader.ends_at = ends_at
        # For those that have all of it and wait.
        await writer.publish(["end"])

    await together(chaos, write, *(reader.run for reader in readers))
    ends_at = readers[0].ends_at
    return {message.seq: message.subject async for message in stream.read(end=ends_at + 1)}


async def last_seq_of(stream):
    with suppress(js.RequestTimeout, js.NoResponders, js.JetStreamError):
        return (await stream.info()).state.last_seq
    return None


async def moved_on(readers, seen):
    return all(len(each.seqs) >= count + 20 for each, count in zip(readers, seen, strict=True))


@pytest.mark.parametrize("keeps", [1, 3])
@pytest.mark.parametrize("kind", ["cuts", "deletions"])
async def test_soak_ordered_reads_of_a_stream_that_compacts_itself(server, name, keeps, kind):
    troubles = rounds(5, 200)
    chance = random.Random(30)
    # A server that deletes a consumer may drop a request that comes just then: only heartbeats
    # show that.
    silence = DEAF if kind == "cuts" else ALERT
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(server.url))
        async with (
            js.connect(server.url, reconnect=PATIENT) as near,
            js.connect(proxy.url, reconnect=PATIENT, ping_interval=1) as far,
        ):
            jet = near.jetstream(timeout=60)
            config = StreamConfig(name=name, subjects=[f"{name}.>"], max_msgs_per_subject=keeps)
            stream = await jet.create_stream(config)
            writer = Writer(near.jetstream(timeout=1), name)
            await writer.fill()
            read = partial(far.jetstream(timeout=60).bind_stream(name).ordered, **silence)
            last = {"deliver_policy": "last_per_subject"}
            readers = [
                Reader(stream, writer, read(**options))
                for options in ({}, last, last | {"max_messages": 7}, last | {"max_bytes": 2000})
            ]

            async def trouble(number):
                if kind == "cuts":
                    proxy.cut()
                    return
                gone = chance.choice(readers).messages.consumer_name
                with suppress(js.JetStreamError):
                    if gone is not None:
                        await stream.delete_consumer(gone)

            stored = await disturbed(stream, writer, readers, trouble, troubles)
            for number, reader in enumerate(readers):
                reader.check(f"{kind}, keeps {keeps}, read {number}", stored)
            await eventually(has_no_consumers, stream, patience=120)


@pytest.mark.parametrize("keeps", [1, 3])
async def test_soak_ordered_reads_of_a_cluster_that_compacts(cluster, name, keeps, monkeypatch):
    # Past the proxy, to another server, there would be nothing to cut.
    monkeypatch.setattr(ServerPool, "discover", lambda *_: [])
    troubles = rounds(5, 60)
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(cluster.servers[0].url))
        async with (
            js.connect(cluster.url, reconnect=PATIENT) as near,
            js.connect(proxy.url, reconnect=PATIENT, ping_interval=1) as far,
        ):
            jet = near.jetstream(timeout=60)
            config = StreamConfig(
                name=name, subjects=[f"{name}.>"], max_msgs_per_subject=keeps, num_replicas=3
            )
            stream = await jet.create_stream(config)
            writer = Writer(near.jetstream(timeout=1), name)
            await writer.fill()
            read = partial(far.jetstream(timeout=60).bind_stream(name).ordered, **ALERT)
            last = {"deliver_policy": "last_per_subject"}
            readers = [
                Reader(stream, writer, read(**options))
                for options in ({}, last, last | {"max_messages": 7})
            ]

            async def trouble(number):
                if number % 2:
                    proxy.cut()
                else:
                    await step_down(near, f"STREAM.LEADER.STEPDOWN.{name}")

            stored = await disturbed(stream, writer, readers, trouble, troubles)
            for number, reader in enumerate(readers):
                reader.check(f"cluster, keeps {keeps}, read {number}", stored)
            await eventually(has_no_consumers, stream, patience=120)
