"""Our blocking form.

What a call imports at its first use is no message's cost: it is made before the measurement.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

import js_sync
from tests.bench.job import BATCH, BUFFER, SINK_SUBJECT, STREAM, TICKS, WINDOW, Job, Meter
from twinstream.core.client.tls import TlsOptions


@contextmanager
def context(job: Job) -> Generator[js_sync.JetStream]:
    """Connect."""
    tls = TlsOptions(ca_file=job.ca) if job.ca else None
    with js_sync.connect(job.url, tls=tls) as connection:
        yield connection.jetstream(timeout=30)


def drain(job: Job) -> str:
    """Iterate without acknowledgements."""
    with context(job) as jet:
        source = jet.bind_consumer(STREAM, job.consumer)
        endless = source.messages(max_messages=BUFFER)
        meter, seen = Meter(), 0
        with endless as messages:
            for _ in messages:
                seen += 1
                if seen == job.count:
                    break
        return meter.result(seen)


def consume(job: Job) -> str:
    """Iterate with an acknowledgement each."""
    with context(job) as jet:
        warm_up(jet, job)
        source = jet.bind_consumer(STREAM, job.consumer)
        endless = source.messages(max_messages=BUFFER)
        meter, seen = Meter(), 0
        with endless as messages:
            for message in messages:
                message.ack()
                seen += 1
                if seen == job.count:
                    break
        acknowledged(source, job.count)
        return meter.result(seen)


def fetch(job: Job) -> str:
    """Fetch batches with an acknowledgement each."""
    with context(job) as jet:
        warm_up(jet, job)
        source = jet.bind_consumer(STREAM, job.consumer)
        meter, seen = Meter(), 0
        while seen < job.count:
            for message in source.fetch(BATCH, timeout=10):
                message.ack()
                seen += 1
        acknowledged(source, job.count)
        return meter.result(seen)


def warm_up(jet: js_sync.JetStream, job: Job) -> None:
    """Import what `acknowledged` imports at its first use: that is no message's cost."""
    jet.bind_consumer(STREAM, job.consumer).info()


def acknowledged(source: js_sync.Consumer, count: int) -> None:
    """Return when the server has every acknowledgement."""
    while source.info().ack_floor.consumer_seq < count:
        time.sleep(0.001)


def next_(job: Job) -> str:
    """Ask for one message at a time."""
    with context(job) as jet:
        source = jet.bind_consumer(STREAM, job.consumer)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            if source.next(timeout=10) is None:
                raise AssertionError("no message")
            meter.call(began)
        return meter.result(job.count)


def idle(job: Job) -> str:
    """Wait for messages that come one by one."""
    with context(job) as jet:
        source = jet.bind_consumer(TICKS, job.consumer)
        endless = source.messages()
        meter, seen = Meter(), 0
        with endless as messages:
            for message in messages:
                seen += meter.tick(message.data)
                if seen == job.count:
                    break
        return meter.result(seen)


def publish(job: Job) -> str:
    """Publish one message at a time."""
    with context(job) as jet:
        jet.publish(SINK_SUBJECT, job.payload)
        meter = Meter()
        for _ in range(job.count):
            began = time.perf_counter()
            jet.publish(SINK_SUBJECT, job.payload, headers=job.headers)
            meter.call(began)
        return meter.result(job.count)


def pipelined(job: Job) -> str:
    """Publish with many under way."""
    with context(job) as jet:
        jet.publish(SINK_SUBJECT, job.payload)
        # One for each message, as a program makes them.
        requests = (
            (SINK_SUBJECT, job.payload)
            if job.headers is None
            else js_sync.PublishRequest(SINK_SUBJECT, job.payload, job.headers)
            for _ in range(job.count)
        )
        outcomes = jet.publish_many(requests, window=WINDOW)
        meter, done = Meter(), 0
        for outcome in outcomes:
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error
            done += 1
        return meter.result(done)
