"""Failures in a cluster: its nodes are killed, stopped and cut off while clients work."""

from __future__ import annotations

import random

import js_async as js
from js_async.runtime.concurrency import aside
from tests._async.flow import eventually, pause
from tests._async.leaders import step_down
from twinstream.models.error_codes import NO_SUITABLE_PEERS

__all__ = ["PATIENT", "Progress", "created", "is_passing", "trouble"]

PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.2, attempts=-1)
# What a call may end with while a group has no leader; whether it took effect is not known.
PASSING = (js.ConnectionLost, js.NoResponders, js.OutcomeUnknown, js.RequestTimeout)
TROUBLES = (
    "isolate the leader",
    "kill the leader",
    "isolate a node",
    "stop the leader",
    "step down",
    "kill another",
    "stop all",
)


def is_passing(error):
    """Return whether an error may be temporary."""
    return isinstance(error, PASSING) or getattr(error, "code", 0) == 503


class Progress:
    """The progress of the workers."""

    def __init__(self):
        self.done = 0
        self.is_over = False

    async def has(self, target):
        """Return whether the workers have reached `target`."""
        return self.done >= target


async def created(call):
    """Return the result of a call that creates a stream, once the cluster has all of its nodes.

    After a failure, the cluster's leader may regard a node as offline for a while.
    """

    async def attempt():
        try:
            return await call()
        except js.JetStreamError as error:
            if error.err_code != NO_SUITABLE_PEERS:
                raise
            return None

    return await eventually(attempt, patience=90)


async def healthy(stream):
    """Return the leader of a stream once all of its replicas are current."""
    found = []

    async def look():
        try:
            cluster = (await stream.info(timeout=2)).cluster
        except js.TwinstreamError as error:
            if is_passing(error):
                found[:] = [error]
                return None
            raise
        replicas = cluster.replicas or []
        found[:] = [cluster]
        whole = len(replicas) == 2 and all(each.current and not each.offline for each in replicas)
        return cluster.leader if whole else None

    try:
        return await eventually(look, patience=90)
    except AssertionError as error:
        error.add_note(f"the last answer about the stream {stream.name}: {found}")
        raise


async def lead(connection, stream, node):
    """Make a node the leader of a stream."""

    async def look():
        if await healthy(stream) == node.name:
            return True
        await step_down(connection, f"STREAM.LEADER.STEPDOWN.{stream.name}")
        return False

    await eventually(look, patience=90)


async def isolate(cluster, chance):
    """Cut the last node off for a shorter or a longer time than an election takes."""
    cluster.isolate(silently=chance.random() < 0.5)
    await pause(chance.uniform(0.5, 8))
    await aside(cluster.rejoin)


async def trouble(cluster, stream, progress, count, *others, patience=90):
    """Cause failures repeatedly, each after the workers have made progress.

    Each failure begins when the stream and the streams named in `others` have all replicas.
    `patience` is the maximum number of seconds in which the workers make no progress.
    """
    chance = random.Random(stream.name)
    target = 0
    async with js.connect(cluster.url, reconnect=PATIENT, request_timeout=5) as connection:
        # Not over the connection of the workers, so that theirs break in any state.
        jet = connection.jetstream(timeout=5)
        seen, *rest = [await jet.get_stream(each, timeout=60) for each in (stream.name, *others)]
        for number in range(count):
            for each in rest:
                await healthy(each)
            leader = cluster.node(await healthy(seen))
            target = max(target, progress.done) + chance.randrange(5, 15)
            await eventually(progress.has, target, patience=patience)
            what = TROUBLES[number % len(TROUBLES)]
            node = leader
            if what == "kill another":
                node = next(each for each in cluster.servers if each is not leader)
            if what.startswith("isolate"):
                if what == "isolate the leader":
                    await lead(connection, seen, cluster.servers[-1])
                await isolate(cluster, chance)
            elif what == "step down":
                await step_down(connection, f"STREAM.LEADER.STEPDOWN.{stream.name}")
            elif what == "stop the leader":
                leader.pause()
                await pause(chance.uniform(0.5, 3))
                leader.resume()
            elif what == "stop all":
                for each in cluster.servers:
                    each.pause()
                await pause(chance.uniform(0.1, 0.5))
                for each in cluster.servers:
                    each.resume()
            else:
                node.kill()
                await pause(chance.uniform(0, 2))
                await aside(node.restart)
        await healthy(seen)
    progress.is_over = True
