"""A process that is killed: relays an outbox or processes a stream, with either twin.

`python worker.py TWIN WORK BY URL STREAM PATH [finish]`: TWIN is `js_sync` or `js_async`, WORK is
`outbox` or `process`. It prints `ready` and works for ever; with `finish` until nothing waits.
"""

from __future__ import annotations

import asyncio
import sys
import time

import js_async.exactly_once
import js_async.outbox
import js_sync.exactly_once
import js_sync.outbox
from twinstream.records.publish_request import PublishRequest

PATIENT = {
    "reconnect": js_sync.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1),
    "connect_timeout": 60,
    "request_timeout": 60,
}


def results(message):
    return [PublishRequest(subject="in-out.{id}", data=message.data)] * 2


def blocking(work, by, url, stream, path, finish):
    with js_sync.connect(url, **PATIENT) as connection:
        jet = connection.jetstream(timeout=60)
        if work == "outbox":
            relay = js_sync.outbox.OutboxRelay(
                jet, js_sync.outbox.SqliteOutbox(path), stream, by=by, poll=0.01
            )
            if finish:
                relay.flush(timeout=300)
                return
            with relay:
                print("ready", flush=True)
                time.sleep(3600)
        consumer = jet.get_consumer(stream, "w")
        handling = js_sync.exactly_once.Processing(
            jet, stream, "w", results, into=f"{stream}-OUT", by=by, concurrency=3
        )
        with handling:
            print("ready", flush=True)
            while not (finish and settled(consumer.info())):
                time.sleep(0.05)


async def for_loops(work, by, url, stream, path, finish):
    async with js_async.connect(url, **PATIENT) as connection:
        jet = connection.jetstream(timeout=60)
        if work == "outbox":
            relay = js_async.outbox.OutboxRelay(
                jet, js_async.outbox.SqliteOutbox(path), stream, by=by, poll=0.01
            )
            if finish:
                await relay.flush(timeout=300)
                return
            async with relay:
                print("ready", flush=True)
                await asyncio.sleep(3600)

        async def handle(message):
            return results(message)

        consumer = await jet.get_consumer(stream, "w")
        handling = js_async.exactly_once.Processing(
            jet, stream, "w", handle, into=f"{stream}-OUT", by=by, concurrency=3
        )
        async with handling:
            print("ready", flush=True)
            while not (finish and settled(await consumer.info())):
                await asyncio.sleep(0.05)


def settled(info):
    return info.num_pending == 0 and info.num_ack_pending == 0


if __name__ == "__main__":
    twin, work, by, url, stream, path, *rest = sys.argv[1:]
    if twin == "js_sync":
        blocking(work, by, url, stream, path, bool(rest))
    else:
        asyncio.run(for_loops(work, by, url, stream, path, bool(rest)))
