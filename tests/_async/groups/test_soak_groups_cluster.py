"""An elastic consumer group in a cluster whose nodes are killed, stopped and cut off.

The test runs only with `make soak`: a short form would start three servers for little evidence.
"""

from __future__ import annotations

import pytest

import js_async as js
from tests._async.flow import eventually, pause, together
from tests._async.members import QUICK, Members, Seen, consumed, elastic
from tests._async.trouble import PATIENT, Progress, is_passing, trouble
from tests.conftest import VERSION
from tests.soak import LONG, rounds, state
from twinstream.testing import NatsCluster

# How many messages may be stored and not handled yet.
AHEAD = 500
# The longest time in seconds in which the group's stream copies nothing. A server that gets no
# response when it creates its consumer of the other stream tries again after 30 s. After each
# failure it waits 10 s longer than before, up to 2 minutes (2.15.1).
COPYING = 300


@pytest.fixture(scope="module")
def own_cluster():
    """Three servers that these tests kill and cut off."""
    with NatsCluster(version=VERSION, separable=True) as running:
        yield running


@pytest.mark.skipif(not LONG, reason="only with `make soak`")
async def test_a_group_in_a_cluster_in_trouble(own_cluster, name):
    troubles, seen, progress = rounds(4, 63), Seen(name, patience=2), Progress()
    async with js.connect(own_cluster.url, reconnect=PATIENT) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        group = await elastic(jet, name, "m1", "m2", stream={"num_replicas": 3})
        started = [
            await members.start(own_cluster, name, each, seen, QUICK, reconnect=PATIENT)
            for each in ("m1", "m2", "m3")
        ]
        published, packed = 0, jet.bind_stream(group.source_stream_name)

        async def has_copied(count):
            try:
                return (await packed.info()).state.last_seq >= count
            except js.TwinstreamError as error:
                if not is_passing(error):
                    raise
                return False

        async def handled(count):
            """Wait until so many messages were handled; the members cannot do it earlier."""
            if len(seen.numbers) < count:
                await eventually(has_copied, count, patience=COPYING)
                await consumed(seen, count, patience=120)

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
                await handled(published - AHEAD)
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
        patience = COPYING + 120
        await together(
            lambda: trouble(own_cluster, stream, progress, troubles, *inner, patience=patience),
            write,
            change,
        )
        await handled(published)
        state(f"group in trouble: {troubles} troubles, {published} messages, {seen.again} again")
        seen.check(published)
        for each in started:
            await each.stop()
