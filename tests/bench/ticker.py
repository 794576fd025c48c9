"""Publishes single messages to an idle consumer, from a process of its own.

`python -m tests.bench.ticker JOB`: one message every few milliseconds, each with the time it was
sent, until it is killed.
"""

from __future__ import annotations

import sys
import time
from itertools import cycle

from tests.bench.clients.raw import Socket
from tests.bench.job import TICKS_SUBJECT, Job, tick

# Not in step with anybody's timer.
PAUSES = (0.003, 0.0047, 0.0039, 0.0053)


def main(job: Job) -> None:
    """Publish until killed."""
    raw = Socket(job)
    for pause in cycle(PAUSES):
        raw.ask(TICKS_SUBJECT, tick(job.size))
        time.sleep(pause)


if __name__ == "__main__":
    main(Job.read(sys.argv[1]))
