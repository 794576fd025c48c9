"""Our blocking form."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

import js_sync
from tests.bench.clients.js_async import config
from tests.bench.workloads import BATCH, PAYLOAD, SINK_SUBJECT, STREAM, WINDOW, Meter


@contextmanager
def consumer(url: str, policy: str) -> Generator[js_sync.Consumer]:
    """Open a new consumer of the filled stream."""
    with js_sync.connect(url) as connection:
        yield connection.jetstream(timeout=30).create_consumer(STREAM, config(policy))


def drain(url: str, count: int) -> str:
    """Iterate without acknowledgements."""
    with consumer(url, "none") as source:
        meter, seen = Meter(), 0
        with source.messages(max_messages=5000) as messages:
            for _ in messages:
                seen += 1
                if seen == count:
                    break
        return meter.result(seen)


def consume(url: str, count: int) -> str:
    """Iterate with an acknowledgement each."""
    with consumer(url, "explicit") as source:
        meter, seen = Meter(), 0
        with source.messages(max_messages=1000) as messages:
            for message in messages:
                message.ack()
                seen += 1
                if seen == count:
                    break
        acknowledged(source, count)
        return meter.result(seen)


def fetch(url: str, count: int) -> str:
    """Fetch batches with an acknowledgement each."""
    with consumer(url, "explicit") as source:
        meter, seen = Meter(), 0
        while seen < count:
            for message in source.fetch(BATCH, timeout=10):
                message.ack()
                seen += 1
        acknowledged(source, count)
        return meter.result(seen)


def acknowledged(source: js_sync.Consumer, count: int) -> None:
    """Return when the server has every acknowledgement."""
    while source.info().ack_floor.consumer_seq < count:
        time.sleep(0.001)


def next_(url: str, count: int) -> str:
    """Ask for one message at a time."""
    with consumer(url, "none") as source:
        meter = Meter()
        for _ in range(count):
            began = time.perf_counter()
            if source.next(timeout=10) is None:
                raise AssertionError("no message")
            meter.call(began)
        return meter.result(count)


def publish(url: str, count: int) -> str:
    """Publish one message at a time."""
    with js_sync.connect(url) as connection:
        jet = connection.jetstream(timeout=30)
        jet.publish(SINK_SUBJECT, PAYLOAD)
        meter = Meter()
        for _ in range(count):
            began = time.perf_counter()
            jet.publish(SINK_SUBJECT, PAYLOAD)
            meter.call(began)
        return meter.result(count)


def pipelined(url: str, count: int) -> str:
    """Publish with many under way."""
    with js_sync.connect(url) as connection:
        jet = connection.jetstream(timeout=30)
        jet.publish(SINK_SUBJECT, PAYLOAD)
        meter, done = Meter(), 0
        request = js_sync.PublishRequest(subject=SINK_SUBJECT, data=PAYLOAD)
        for outcome in jet.publish_many((request for _ in range(count)), window=WINDOW):
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error
            done += 1
        return meter.result(done)
