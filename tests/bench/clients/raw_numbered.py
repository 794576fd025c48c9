"""The limit for whoever tells acknowledgements apart: `raw` with a reply subject for each message.

The server remembers who listens to a subject that it has just answered on, so answering always on
the same one, as `raw` lets it, is cheaper than anything that a program can use.
"""

from __future__ import annotations

from tests.bench.clients.raw import publish_all, request
from tests.bench.job import SINK_SUBJECT, Job


def pipelined(job: Job) -> str:
    """Publish with many under way, counting answers."""
    payload = job.payload

    def lines(start: int, end: int) -> bytes:
        numbers = range(start, end)
        return b"".join([request(SINK_SUBJECT, payload, b"%d" % number) for number in numbers])

    return publish_all(job, lines)
