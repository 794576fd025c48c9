"""A cluster with a slow link to its last node, and a reader that trusts a lagging replica."""

from __future__ import annotations

from contextlib import suppress

import js_async as js
from tests._async.flow import eventually
from twinstream.core.read.range_read import AskLeader, RangeRead

FAR = 0.1
"""Seconds from the last node to the others: its replica answers for itself, and lags behind."""


class Believing(RangeRead):
    """A naive reader: it takes the end of a replica's messages for the end of the stream."""

    def page_ended(self, *, more):
        super().page_ended(more=more)
        if isinstance(self.step, AskLeader):
            self.leader_has(None)


async def lead_near(stream):
    """Make the first node, which has a fast link to the second, the leader of a stream."""

    async def led():
        cluster = (await stream.info()).cluster
        if cluster.leader == "node-1":
            return all(each.current for each in cluster.replicas or [])
        with suppress(js.TwinstreamError):
            await stream.replicas.step_down(preferred="node-1")
        return False

    await eventually(led, patience=300.0)
