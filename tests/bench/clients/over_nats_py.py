"""Our asyncio form over a connection of nats-py."""

from __future__ import annotations

import nats

import js_async
from tests.bench.clients.js_async import consumed, drained, run, warm_up
from tests.bench.job import STREAM, Job


def drain(job: Job) -> str:
    """Iterate without acknowledgements."""
    return iterate(job)


def consume(job: Job) -> str:
    """Iterate with an acknowledgement each."""
    return iterate(job)


def iterate(job: Job) -> str:
    """Iterate over as many as are wanted."""

    async def work() -> str:
        client = await nats.connect(job.url, tls=job.tls())
        jet = js_async.from_nats(client, timeout=30)
        await warm_up(jet, job)
        source = jet.bind_consumer(STREAM, job.consumer)
        found = await (drained if job.workload == "drain" else consumed)(source, job)
        await client.close()
        return found

    return run(work)
