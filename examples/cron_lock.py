"""Run a nightly job once, although the crontabs of several hosts start it.

    0 3 * * *  python examples/cron_lock.py nats://127.0.0.1:4222

Each run of this program takes the part of three hosts that start at the same time.

It prints:

    another host does it
    another host does it
    cleaned up
    later: it was done before
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from threading import Barrier

import js_sync
from js_sync.coordination import Coordination, Lease

HOSTS = ("anna", "bert", "carl")


def nightly(server: str, host: str, day: date, tried: Barrier) -> str:
    """Clean up if no other host does, and return what happened."""
    with js_sync.connect(server, name=host) as nc:
        shared = Coordination(nc.jetstream(timeout=30), "LOCKS", create=True, owner=host)
        # A host that crashes during the job keeps the lock for a minute at most.
        lease = shared.lock("nightly", ttl=60).try_acquire()
        tried.wait(30)
        if lease is None:
            return "another host does it"
        with lease:
            # Hosts whose clocks differ may come later, when the lock is free again.
            done = shared.once(f"nightly-{day}", ttl=60).run(lambda _: clean_up(lease))
        return "cleaned up" if done.ran_here else "it was done before"


def clean_up(lease: Lease) -> bytes:
    """Do the work in steps, and stop if the lock is lost, as after a long pause of the machine."""
    for _ in range(3):
        lease.check()
        # A database would refuse a step with a smaller `lease.token` than one it has seen.
    return b"3 steps"


def main(server: str) -> None:
    """Let three hosts start the job, and one of them once more."""
    day = datetime.now(UTC).date()
    tried = Barrier(len(HOSTS))
    with ThreadPoolExecutor(len(HOSTS)) as threads:
        runs = [threads.submit(nightly, server, host, day, tried) for host in HOSTS]
    for outcome in sorted(run.result() for run in runs):
        print(outcome)
    print("later:", nightly(server, "dora", day, Barrier(1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
