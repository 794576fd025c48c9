# Generated from tests/_async/lagging.py by codegen/twin.py. Edit that file instead.
"""A cluster whose last node is far, and a reader that believes what its replica says."""

from __future__ import annotations

from contextlib import suppress

import js_sync as js
from twinstream.core.read.range_read import AskLeader, RangeRead
from tests._sync.flow import eventually

FAR = 0.1
"""Seconds from the last node to the others: its replica answers for itself, and lags behind."""


NO_PEERS = 10005


class Believing(RangeRead):
    """The naive way: the end of a page is the end of what there is."""

    def page_ended(self, *, more):
        super().page_ended(more=more)
        if isinstance(self.step, AskLeader):
            self.leader_has(None)


def placed(jet, config):
    """Make a stream: a server learns what a far node can hold some time after it is there."""

    def made():
        try:
            return jet.create_stream(config)
        except js.JetStreamError as error:
            if error.err_code != NO_PEERS:
                raise
            return None

    return eventually(made)


def lead_near(stream):
    """Have a stream led by the first node, which is near to the second."""

    def led():
        cluster = (stream.info()).cluster
        if cluster.leader == "node-1":
            return all(each.current for each in cluster.replicas or [])
        with suppress(js.TwinstreamError):
            stream.replicas.step_down(preferred="node-1")
        return False

    eventually(led)
