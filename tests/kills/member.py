"""A process that is killed: works as a member of a consumer group, with either twin.

`python member.py TWIN URL GROUP MEMBER MAX_ACK_PENDING`: TWIN is `js_sync` or `js_async`. It
prints `ready` and works until its standard input is closed. The handler stores each message in the
stream `OUT`, so that the order there is that of the work.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

import js_async
import js_async.groups
import js_sync
import js_sync.groups
from twinstream.models import ConsumerConfig

PATIENT = {
    "reconnect": js_sync.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1),
    "connect_timeout": 60,
    "request_timeout": 60,
}


def settings(most):
    return ConsumerConfig(ack_wait=timedelta(seconds=1), max_ack_pending=int(most))


def result_of(message):
    return f"out.{message.subject.rpartition('.')[2]}"


def blocking(url, group, member, most):
    with js_sync.connect(url, **PATIENT) as connection:
        jet = connection.jetstream(timeout=60)

        def handle(message):
            jet.publish(result_of(message), message.data)
            message.double_ack()

        worker = js_sync.groups.ElasticGroup(jet, "IN", group).worker(
            member, handle, config=settings(most), concurrency=3
        )
        with worker:
            print("ready", flush=True)
            sys.stdin.read()


async def for_loops(url, group, member, most):
    async with js_async.connect(url, **PATIENT) as connection:
        jet = connection.jetstream(timeout=60)

        async def handle(message):
            await jet.publish(result_of(message), message.data)
            await message.double_ack()

        worker = js_async.groups.ElasticGroup(jet, "IN", group).worker(
            member, handle, config=settings(most), concurrency=3
        )
        async with worker:
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    twin, *rest = sys.argv[1:]
    if twin == "js_sync":
        blocking(*rest)
    else:
        asyncio.run(for_loops(*rest))
