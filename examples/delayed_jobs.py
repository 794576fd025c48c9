"""Store jobs that start later, by schedules of the server, and cancel one of them.

    python examples/delayed_jobs.py nats://127.0.0.1:4222

It needs nats-server 2.12 or newer. A schedule is a message: it survives restarts of all programs,
and the server publishes the job at its time.

It prints:

    jobs.mail remind customer 1
    jobs.mail remind customer 2
    started early: False
    waiting: ['jobs.timers.3']
    after the cancellation: []
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import js_sync
from js_sync import ConsumerConfig, JetStream, StreamConfig
from js_sync.schedules import Schedule, Schedules


def waiting(schedules: Schedules) -> list[str]:
    """Return the subjects of the schedules that have not fired."""
    return sorted(found.subject for found in schedules.list("jobs.timers.*"))


def start_jobs(jet: JetStream, count: int) -> list[datetime]:
    """Print the jobs as they become due; return when they were published."""
    consumer = jet.create_consumer(
        "JOBS", ConsumerConfig(durable_name="mailer", filter_subject="jobs.mail")
    )
    times: list[datetime] = []
    with consumer.messages(stop_after=count) as messages:
        for message in messages:
            print(message.subject, message.text)
            times.append(message.metadata.timestamp)
            message.ack()
    return times


def main(server: str) -> None:
    """Schedule three jobs, cancel one, and start the others."""
    with js_sync.connect(server, name="mailer") as nc:
        jet = nc.jetstream(timeout=30)
        jet.create_stream(StreamConfig(name="JOBS", subjects=["jobs.>"], allow_msg_schedules=True))
        schedules = Schedules(jet, "JOBS")
        now = datetime.now(UTC)
        delays = {1: timedelta(seconds=1), 2: timedelta(seconds=1.5), 3: timedelta(hours=1)}
        for number, delay in delays.items():
            # The schedule has a subject of its own: a second one there would replace it.
            text = f"remind customer {number}".encode()
            schedules.add(f"jobs.timers.{number}", Schedule.at(now + delay), "jobs.mail", text)

        times = start_jobs(jet, count=2)
        print("started early:", times[0] < now + delays[1] or times[1] < now + delays[2])
        print("waiting:", waiting(schedules))
        schedules.cancel("jobs.timers.3")
        print("after the cancellation:", waiting(schedules))


if __name__ == "__main__":
    main(*sys.argv[1:])
