"""Our asyncio form over a connection of nats-py that parses with our parser."""

from __future__ import annotations

from tests.bench.clients.over_nats_py import iterate
from tests.bench.job import Job


def drain(job: Job) -> str:
    """Iterate without acknowledgements."""
    return iterate(job, own_parser=True)


def consume(job: Job) -> str:
    """Iterate with an acknowledgement each."""
    return iterate(job, own_parser=True)
