"""Reads from three nodes during writes: replicas lag, and the reads miss nothing.

The same range is read twice: by a reader that trusts a replica which reports no more messages, and
by the SDK. The first reader must miss messages; otherwise the test proves nothing.
"""

from __future__ import annotations

from itertools import count

import pytest
from attrs import evolve

import js_async as js
from js_async.backup import backup_stream, restore_stream
from js_async.counters import Counters
from js_async.read.page_sources import DirectPages
from js_async.read.range_reader import RangeReader
from tests._async.flow import eventually, pause, together
from tests._async.lagging import FAR, Believing, lead_near
from tests.conftest import VERSION
from tests.inside import api_of
from twinstream.core.deadline import Deadline
from twinstream.models import StreamConfig
from twinstream.testing import NatsCluster

ROUNDS = 6
PATIENCE = 60.0
BURST = 20


async def naive(jet, name, start, end):
    pages = DirectPages(api_of(jet), name)
    reader = RangeReader(api_of(jet), name, Believing(start, end), pages)
    found = []
    while (page := await reader.next_page()) is not None:
        found += page.seqs
    await reader.close()
    return found


@pytest.fixture
def replicated(name):
    return StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3, allow_direct=True)


@pytest.fixture(scope="module")
def wide():
    with NatsCluster(version=VERSION, far=FAR) as running:
        yield running


async def test_lag_never_shortens_a_read(wide, name, replicated):
    one, two, three = (server.url for server in wide.servers)
    # Readers at every node, so that each replica answers some of the questions.
    async with js.connect(one) as a, js.connect(two) as b, js.connect(three) as c:
        jets = [connection.jetstream() for connection in (a, b, c)]
        await lead_near(await jets[0].create_stream(replicated))
        done = []
        lost = checked = 0

        async def produce():
            while not done:
                await burst(jets[0], name)
                await pause(0.02)

        async def read():
            nonlocal lost, checked
            start, deadline = 1, Deadline.after(PATIENCE)
            try:
                # The far replica answers from when it has caught up with the stream.
                for number in count():
                    if number >= ROUNDS and (lost or deadline.expired()):
                        break
                    for jet in jets:
                        # Acknowledged this moment: the far replica does not have it yet.
                        end = (await jets[0].publish(f"{name}.own")).seq + 1
                        believed = await naive(jet, name, start, end)
                        lost += end - start - len(believed)
                        ours = jet.bind_stream(name).read(start, end)
                        found = [message.seq async for message in ours]
                        assert found == list(range(start, end))
                        assert ours.report.is_complete
                        checked += len(found)
                        start = end
            finally:
                done.append(True)

        await together(produce, read)
        await jets[0].delete_stream(name)
        assert checked > ROUNDS * len(jets)
        assert lost, "no replica lagged, so nothing was shown"


async def burst(jet, name):
    requests = [js.PublishRequest(subject=f"{name}.{at}", data=b"x" * 50) for at in range(BURST)]
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome


@pytest.mark.since("2.12")
async def test_lag_hides_no_counter(wide, name, replicated):
    near, far = wide.servers[0].url, wide.servers[-1].url
    async with js.connect(near) as a, js.connect(far) as b:
        jet = a.jetstream()
        config = evolve(replicated, allow_msg_counter=True)
        await lead_near(await jet.create_stream(config))
        counters, others = Counters(jet, name), Counters(b.jetstream(), name)
        for value in range(1, ROUNDS + 1):
            subjects = [f"{name}.{number}" for number in range(BURST)]
            for subject in subjects:
                assert await counters.add(subject) == value
            found = {each.subject: each.value async for each in others.list(f"{name}.*")}
            assert found == dict.fromkeys(subjects, value)
        await jet.delete_stream(name)


async def test_snapshot_contains_acknowledged_messages(cluster, name, replicated):
    one, two, three = (server.url for server in cluster.servers)
    async with js.connect(one) as a, js.connect(two) as b, js.connect(three) as c:
        jets = [connection.jetstream() for connection in (a, b, c)]
        await jets[0].create_stream(replicated)
        for number in range(60):
            ack = await jets[0].publish(f"{name}.{number % 7}", b"%d" % number)
            snapshot = await jets[number % 3].bind_stream(name).snapshot()
            assert snapshot.seq >= ack.seq
            assert snapshot[f"{name}.{number % 7}"].data == b"%d" % number
        await jets[0].delete_stream(name)


async def test_backup_of_three_replicas_is_restored(cluster, name, replicated, tmp_path):
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = await jet.create_stream(replicated)
        for _ in range(50):
            await burst(jet, name)
        before = [message async for message in stream.read()]
        await backup_stream(jet, stream.name, tmp_path / "copy")
        await jet.delete_stream(name)
        restored = await restore_stream(jet, tmp_path / "copy")

        async def settled():
            info = await restored.info()
            replicas = info.cluster.replicas or []
            return len(replicas) == 2 and all(each.current for each in replicas)

        await eventually(settled)
        assert [message async for message in restored.read()] == before
        await jet.delete_stream(name)
