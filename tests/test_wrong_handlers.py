"""Handlers of the other twin's kind: refused, before a message is called done or tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import js_async
import js_sync
from js_models import ConsumerConfig, StreamConfig
from js_testing import NatsServer

CONSUMER = ConsumerConfig(durable_name="c", ack_policy="explicit", max_deliver=5)


async def coroutine(_: object) -> None:
    raise AssertionError("nobody awaits this")


class Callable:
    async def __call__(self, _: object) -> None:
        raise AssertionError("nobody awaits this")


@pytest.mark.parametrize("handler", [coroutine, Callable(), 5])
def test_the_blocking_twin_takes_no_coroutine_functions(server: NatsServer, handler: Any) -> None:
    with js_sync.connect(server.url) as nc:
        jet = nc.jetstream()
        place = jet.coordination("PLACE", create=True)
        makes = [
            lambda: jet.worker("S", "c", handler),
            lambda: jet.bind_consumer("S", "c").consume(handler),
            lambda: place.leader("x", on_elected=handler),
            lambda: place.once("x").run(handler),
        ]
        for make in makes:
            with pytest.raises(
                js_sync.BadArgument, match=r"a coroutine function, which|must be a function"
            ):
                make()


def test_a_coroutine_that_comes_out_of_a_function_ends_the_work(server: NatsServer) -> None:
    with js_sync.connect(server.url) as nc:
        jet = nc.jetstream()
        stream = jet.create_stream(StreamConfig(name="HIDDEN", subjects=["hidden"]))
        consumer = stream.create_consumer(CONSUMER)
        jet.publish("hidden")
        worker = jet.worker("HIDDEN", "c", lambda message: coroutine(message))
        with pytest.raises(js_sync.WrongHandler, match="nobody awaits here: write `def`"):
            worker.run()
        info = consumer.info()
        assert (info.ack_floor.stream_seq, info.num_redelivered) == (0, 0)
        jet.delete_stream("HIDDEN")


def test_a_plain_function_ends_the_work_of_the_asyncio_twin(server: NatsServer) -> None:
    calls: list[object] = []

    async def work() -> None:
        async with js_async.connect(server.url) as nc:
            jet = nc.jetstream()
            stream = await jet.create_stream(StreamConfig(name="PLAIN", subjects=["plain"]))
            consumer = await stream.create_consumer(CONSUMER)
            for _ in range(3):
                await jet.publish("plain")
            plain: Any = calls.append
            worker = jet.worker("PLAIN", "c", plain, concurrency=1)
            with pytest.raises(js_async.WrongHandler, match="nothing to await: write `async def`"):
                await worker.run()
            assert len(calls) == 1
            assert (await consumer.info()).ack_floor.stream_seq == 0
            with pytest.raises(js_async.BadArgument, match="a coroutine function, got 5"):
                consumer.consume(5)  # type: ignore[arg-type]
            await jet.delete_stream("PLAIN")

    asyncio.run(work())


@pytest.mark.parametrize("told", [coroutine, Callable(), 5])
def test_who_is_told_of_something_is_a_plain_function(
    server: NatsServer, told: Any, tmp_path: Path
) -> None:
    with js_sync.connect(server.url) as nc:
        jet = nc.jetstream()
        consumer = jet.bind_consumer("S", "c")
        outbox = js_sync.SqliteOutbox(str(tmp_path / "outbox.db"))
        stream = jet.bind_stream("S")
        makes: list[tuple[str, Any]] = [
            ("on_event", lambda: js_sync.connect(server.url, on_event=told).__enter__()),
            ("on_report", lambda: consumer.messages(on_report=told)),
            ("on_report", lambda: consumer.consume(print, on_report=told)),
            ("on_report", lambda: stream.ordered(on_report=told)),
            ("on_report", lambda: stream.subscribe(CONSUMER, on_report=told).__enter__()),
            ("on_report", lambda: jet.worker("S", "c", print, on_report=told)),
            ("on_report", lambda: jet.dead_letters("S", on_report=told)),
            ("on_report", lambda: jet.outbox(outbox, stream="S", by="id", on_report=told)),
            ("on_report", lambda: jet.process(consumer, print, into="S", by="id", on_report=told)),
            ("on_drop", lambda: jet.events(on_drop=told).__enter__()),
            ("on_progress", lambda: stream.backup(tmp_path / "backup", on_progress=told)),
            ("on_progress", lambda: jet.restore(tmp_path / "backup", on_progress=told)),
        ]
        for name, make in makes:
            with pytest.raises(js_sync.BadArgument, match=f"{name} must be"):
                make()


def test_a_coroutine_function_is_not_told_of_events_in_vain(server: NatsServer) -> None:
    async def main() -> None:
        with pytest.raises(js_async.BadArgument, match="on_event must be a plain function"):
            await js_async.connect(server.url, on_event=coroutine)  # type: ignore[arg-type]

    asyncio.run(main())
