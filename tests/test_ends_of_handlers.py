"""Handlers that end in other ways than by returning or by raising an exception."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

import js_async.workers
import js_sync
from js_sync.coordination import Coordination, Lease
from js_sync.workers import Worker
from tests._sync.flow import eventually
from tests.hooked import hooked
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

CONSUMER = ConsumerConfig(durable_name="c", ack_policy="explicit")


@pytest.mark.parametrize("way", ["worker", "consume", "leader"])
def test_a_handler_that_exits_ends_the_program(server: NatsServer, way: str) -> None:
    name = f"EXIT-{way}"
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        stream = jet.create_stream(StreamConfig(name=name, subjects=[name]))
        for _ in range(10):
            jet.publish(name)

        def leave(_: object) -> None:
            sys.exit(3)

        def run() -> None:
            if way == "worker":
                Worker(jet, name, CONSUMER, leave).run(signals=False)
            elif way == "consume":
                consumer = stream.create_consumer(CONSUMER)
                consuming = consumer.consume(lambda _: leave(eventually(is_behind, patience=300)))

                def is_behind() -> bool:
                    # One in the handler, one in the lane, one on its way into it.
                    return consuming.messages.buffered == 7

                with consuming:
                    consuming.wait(timeout=300)
            else:
                place = Coordination(jet, f"{name}-P", create=True)
                with place.leader("x", on_elected=leave) as leader:
                    leader.wait(timeout=300)

        with pytest.raises(SystemExit, match="3"):
            run()
        jet.delete_stream(name)


def test_what_a_handler_awaited_and_was_cancelled_is_a_failure(server: NatsServer) -> None:
    attempts: list[int] = []

    async def handler(message: js_async.Message) -> None:
        attempts.append(message.metadata.num_delivered)
        if len(attempts) == 1:
            other = asyncio.ensure_future(asyncio.sleep(60))
            other.cancel()
            await other
        await worker.stop()

    async def work() -> None:
        nonlocal worker
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            await jet.create_stream(StreamConfig(name="AWAITED", subjects=["awaited"]))
            await jet.publish("awaited")
            retry = js_async.workers.Retry(first=0.01)
            worker = js_async.workers.Worker(jet, "AWAITED", CONSUMER, handler, retry=retry)
            await worker.run(signals=False)
            await jet.delete_stream("AWAITED")

    worker: js_async.workers.Worker
    asyncio.run(work())
    assert attempts == [1, 2]


def test_cancelling_a_worker_ends_it(server: NatsServer) -> None:
    running: list[object] = []

    async def handler(message: js_async.Message) -> None:
        running.append(message)
        await asyncio.sleep(0.05)
        running.remove(message)

    async def work() -> None:
        async with js_async.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            await jet.create_stream(StreamConfig(name="CUT", subjects=["cut"]))
            for _ in range(20):
                await jet.publish("cut")
            worker = js_async.workers.Worker(jet, "CUT", CONSUMER, handler)
            task = asyncio.ensure_future(worker.run(signals=False))
            while not running:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (running, worker.in_hand, worker.waiting) == ([], 0, 0)
            assert 1 <= worker.handled < 20
            await jet.delete_stream("CUT")

    asyncio.run(work())


def test_a_handler_may_stop_its_campaign_before_its_thread_is_noted(server: NatsServer) -> None:
    """The thread of the handler runs before the thread that started it continues."""
    done = threading.Event()

    def ahead(started: tuple[str, object]) -> None:
        if "-term-" in started[0]:
            done.wait(0.3)

    with hooked("task: started", ahead), js_sync.connect(server.url, **UNHURRIED) as nc:
        coordination = Coordination(nc.jetstream(), "STOPS", create=True)

        def elected(_: Lease) -> None:
            leader.stop(timeout=60)
            done.set()

        leader = coordination.leader("a", on_elected=elected)
        leader.start()
        leader.wait(timeout=300)
    assert done.is_set()


def test_no_later_message_of_a_subject_begins_after_an_exit(server: NatsServer) -> None:
    """The worker has not stopped yet: it reports first why it ends."""
    seen: list[int] = []

    def leave(message: js_sync.Message) -> None:
        seen.append(message.metadata.stream_seq)
        eventually(lambda: worker.waiting, patience=300)
        sys.exit(3)

    with js_sync.connect(server.url, **UNHURRIED) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="LATER", subjects=["later"]))
        for _ in range(5):
            jet.publish("later")
        worker = Worker(
            jet, "LATER", CONSUMER, leave, order="subject", concurrency=2,
            on_report=lambda _: time.sleep(0.3),
        )  # fmt: skip
        with pytest.raises(SystemExit, match="3"):
            worker.run(signals=False)
        jet.delete_stream("LATER")
    assert seen == [1]


def test_a_release_of_another_thread_is_no_loss(server: NatsServer) -> None:
    class Overtaken(Lease):
        @property
        def is_held(self) -> bool:
            done: list[bool] = []
            thread = threading.Thread(target=lambda: done.append(self.release(timeout=60)))
            self.__class__ = Lease
            thread.start()
            thread.join(120)
            return self.is_held

    with js_sync.connect(server.url, **UNHURRIED) as nc:
        place = Coordination(nc.jetstream(), "LEAVES", create=True)
        lease = place.lock("a").try_acquire()
        assert lease is not None
        lease.__class__ = Overtaken
        assert lease.lost is None
        assert not lease.is_held
