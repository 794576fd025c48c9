"""Outboxes whose calls are cancelled at any of their suspensions."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import js_async as js
import js_async.publish.publisher
from js_async.outbox import OutboxRelay, SqliteOutbox
from twinstream.models import StreamConfig


async def test_cancelled_flush_releases_the_outbox(server, tmp_path):
    claiming, go_on = threading.Event(), threading.Event()

    class Slow(SqliteOutbox):
        def claim(self):
            claiming.set()
            assert go_on.wait(30)
            return super().claim()

    path = str(tmp_path / "app.db")
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        await jet.create_stream(StreamConfig(name="CANCELLED", subjects=["cancelled.>"]))
        relay = OutboxRelay(jet, Slow(path), "CANCELLED", by="subject")
        flushing = asyncio.create_task(relay.flush())
        assert await asyncio.to_thread(claiming.wait, 30)
        flushing.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await flushing
        other = OutboxRelay(jet, SqliteOutbox(path), "CANCELLED", by="subject")
        assert await other.flush(timeout=0.001) == 0


async def test_a_flush_may_be_cancelled_at_each_call_of_its_outbox(server, tmp_path):
    path = str(tmp_path / "app.db")
    outbox = SqliteOutbox(path)
    loop = asyncio.get_running_loop()
    go_on = threading.Event()

    class OneThread(ThreadPoolExecutor):
        """Cancel the flush at one of its calls of the outbox, before the call has begun."""

        left = 0

        def submit(self, /, work, *args, **options):
            self.left -= 1
            if self.left == 0:
                go_on.clear()
                super().submit(go_on.wait, 30)
                loop.call_soon(flushing.cancel)
                loop.call_soon(go_on.set)
            return super().submit(work, *args, **options)

    threads = OneThread(max_workers=1)
    loop.set_default_executor(threads)
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=10)
        stream = await jet.create_stream(StreamConfig(name="CALLS", subjects=["calls.>"]))
        for call in itertools.count(1):
            with closing(sqlite3.connect(path)) as db, db:
                outbox.create(db)
                outbox.add(db, "calls.{id}")
            threads.left = call
            flushing = asyncio.create_task(OutboxRelay(jet, outbox, "CALLS", by="id").flush())
            await asyncio.wait([flushing])
            assert flushing.cancelled() == (threads.left <= 0)
            await OutboxRelay(jet, outbox, "CALLS", by="id").flush(timeout=0.001)
            assert (await stream.info()).state.messages == call
            if not flushing.cancelled():
                break
        assert call > 5
