"""Elect a leader among the processes of a service, and let another one take over.

    python examples/leader.py nats://127.0.0.1:4222

Here two candidates of one program stand for two processes, which would call `campaign.run()`.

It prints:

    anna leads
    bert leads beside her: False
    bert leads
    anna: False bert: True
"""

from __future__ import annotations

import asyncio
import sys

import js_async
from js_async.coordination import Coordination, Leader, Lease


class Candidate:
    """A process that works while it is the leader."""

    def __init__(self, jet: js_async.JetStream, name: str) -> None:
        self.name = name
        self.elected = asyncio.Event()
        shared = Coordination(jet, "LOCKS", create=True, owner=name)
        # If a leader is killed, another one is elected after 15 seconds.
        self.campaign: Leader = shared.leader("scheduler", ttl=15, on_elected=self.lead)

    async def lead(self, lease: Lease) -> None:
        """Work until the term ends."""
        print(self.name, "leads")
        self.elected.set()
        while lease.is_held:
            # One short step of the work; its writes would carry `lease.token`.
            await asyncio.sleep(0.05)


async def main(server: str) -> None:
    """Elect anna, let her end, and see bert take over."""
    async with js_async.connect(server, name="scheduler") as nc:
        jet = nc.jetstream(timeout=30)
        anna, bert = Candidate(jet, "anna"), Candidate(jet, "bert")
        async with anna.campaign:
            await asyncio.wait_for(anna.elected.wait(), 30)
            await bert.campaign.start()
            print("bert leads beside her:", bert.campaign.is_leader)
        # The end of the block has released the leadership, and bert was notified.
        await asyncio.wait_for(bert.elected.wait(), 30)
        print("anna:", anna.campaign.is_leader, "bert:", bert.campaign.is_leader)
        await bert.campaign.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
