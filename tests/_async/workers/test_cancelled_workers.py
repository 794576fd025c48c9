"""Workers that end while tasks are cancelled."""

from __future__ import annotations

import itertools
import threading

import pytest

import js_async as js
import js_async.publish.publisher
from js_async.runtime.concurrency import Signal, here, set_from_anywhere
from js_async.workers import DeadLetters, Worker
from tests._async.cancelling import WAITING, cancelled_at
from tests.hooked import starts
from twinstream.core.deadline import Deadline
from twinstream.models import ConsumerConfig, StreamConfig


async def test_worker_can_be_stopped_from_any_thread() -> None:
    flag = Signal()
    asking = threading.Thread(target=set_from_anywhere, args=(flag, here()))
    asking.start()
    assert await flag.sleep(Deadline.after(30))
    asking.join()


@pytest.mark.parametrize("order", ["none", "subject"])
async def test_worker_with_cancelled_end_releases_its_dead_letters(server, order):
    async def handle(message):
        await message.ack()

    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        stream = await jet.create_stream(StreamConfig(name="LET_GO", subjects=["let.go"]))
        await stream.create_consumer(ConsumerConfig(durable_name="w"))
        for stop_at in itertools.count(1):
            letters = DeadLetters(jet, "LET_GO")
            worker = Worker(jet, "LET_GO", "w", handle, order=order, dead_letters=letters)
            with starts() as tasks:
                await worker.start()
            collecting = tasks["twinstream-deadletters"]
            reached, _ = await cancelled_at(worker.stop(), stop_at, WAITING)
            assert await collecting.join(Deadline.after(20)), f"cancelled at {stop_at}"
            if not reached:
                break
        assert stop_at > 1
        for name in ("LET_GO", letters.letters_stream_name, letters.failures_stream_name):
            await jet.delete_stream(name)
