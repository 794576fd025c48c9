"""An elastic consumer group in a cluster whose nodes are killed, stopped and cut off.

The test runs only with `make soak`: a short form would start three servers for little evidence.
"""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.flow import pause, together
from tests._async.members import QUICK, Member, Seen, consumed, elastic
from tests._async.trouble import PATIENT, Progress, is_passing, trouble
from tests.conftest import VERSION
from tests.soak import LONG, rounds, state
from twinstream.testing import NatsCluster

# How many messages may be stored and not handled yet.
AHEAD = 500


@pytest.fixture(scope="module")
def own_cluster():
    """Three servers that these tests kill and cut off."""
    with NatsCluster(version=VERSION, separable=True) as running:
        yield running


@pytest.mark.skipif(not LONG, reason="only with `make soak`")
async def test_a_group_in_a_cluster_in_trouble(own_cluster, name):
    troubles, seen, progress = rounds(4, 63), Seen(name), Progress()
    async with js.connect(own_cluster.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=10)
        group = await elastic(jet, name, "m1", "m2", stream={"num_replicas": 3})
        members = [
            await Member(own_cluster, name, each, seen, QUICK, reconnect=PATIENT).start()
            for each in ("m1", "m2", "m3")
        ]
        published = 0

        async def write():
            nonlocal published
            while not progress.is_over:
                # One after the other, so that the stream has each key's messages in order.
                subject, number = f"{name}.{Seen.key(published)}", b"%d" % published
                try:
                    await jet.publish(subject, number, msg_id=number.decode())
                except js.TwinstreamError as error:
                    if not is_passing(error):
                        raise
                    continue
                published += 1
                await consumed(seen, published - AHEAD, patience=120)
                progress.done += 1

        async def change():
            joins = True
            while not progress.is_over:
                await pause(1)
                call = group.add_members if joins else group.remove_members
                try:
                    await call("m3")
                except js.TwinstreamError as error:
                    if not is_passing(error):
                        raise
                else:
                    joins = not joins

        stream = await jet.get_stream(name)
        # The packed stream of the group, and the bucket of its configuration.
        inner = [each async for each in jet.stream_names() if each != name]
        await together(
            lambda: trouble(own_cluster, stream, progress, troubles, *inner), write, change
        )
        await consumed(seen, published, patience=120)
        state(f"group in trouble: {troubles} troubles, {published} messages, {seen.again} again")
        seen.check(published)
        for each in members:
            await each.stop()
